"""Made transcripts, shaped like those that agents write: one conversation, in every format.

    steps = conversation(turns=6)
    write_lines(path, claude_code(steps, compact_after=3))
    write_lines(path, codex(steps))
    path.write_text(json.dumps(chat(steps)))

Everything is computed from its place in the conversation: the same arguments, the same bytes.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SESSION = "0f3c9a52-77aa-4c1e-9d10-5b8e2f6a1c33"
PROJECT = "/home/ada/shop"
MODEL = "claude-sonnet-4-20250514"
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
FILES = ("src/cart.py", "src/prices.py", "tests/test_cart.py", "README.md")
SYSTEM = "You are a coding agent. Answer briefly."

Json = dict[str, Any]


@dataclass
class Call:
    """One tool call and what came back."""

    number: int
    name: str
    arguments: Json
    output: str
    failed: bool = False


@dataclass
class Step:
    """One thing that happens: the user asks, or the model says something and calls tools."""

    number: int
    asked: str = ""
    said: str = ""
    calls: list[Call] = field(default_factory=list)

    @property
    def at(self) -> str:
        return (START + timedelta(seconds=20 * self.number)).isoformat().replace("+00:00", "Z")


def conversation(turns: int = 6, lines: int = 40) -> list[Step]:
    """Return a conversation: in each turn a file is read, tests fail, the file is edited, tests pass."""
    return [step for turn in range(turns) for step in _turn(turn, lines)]


def _turn(turn: int, lines: int) -> Iterator[Step]:
    path = FILES[turn % len(FILES)]
    code = "\n".join(f"{n + 1}\tdef price_{turn % 2}_{n}(): return {n * 7}" for n in range(lines))
    log = "\n".join(f"test_{n} ... {'FAILED' if n == 3 else 'ok'}" for n in range(lines // 2))
    first, base = turn * 5, turn * 4
    yield Step(first, asked=f"Please fix BUG-{turn} in {path}.")
    yield Step(
        first + 1,
        said=f"I read {path} and run the tests.",
        calls=[
            Call(base, "Read", {"file_path": f"{PROJECT}/{path}"}, code),
            Call(base + 1, "Bash", {"command": "pytest -q"}, f"Exit code 1\n{log}", failed=True),
        ],
    )
    edit = {
        "file_path": f"{PROJECT}/{path}",
        "old_string": f"return {21 + turn}",
        "new_string": f"return {22 + turn}",
    }
    yield Step(first + 2, calls=[Call(base + 2, "Edit", edit, f"The file {path} was edited.")])
    passed = log.replace("FAILED", "ok")
    yield Step(first + 3, calls=[Call(base + 3, "Bash", {"command": "pytest -q"}, passed)])
    yield Step(first + 4, said=f"BUG-{turn} is fixed: price_{turn % 2}_3 now rounds.")


# -- Claude Code ------------------------------------------------------------------------------------


def claude_code(
    steps: Iterable[Step],
    *,
    compact_after: int | None = None,
    subagent: bool = False,
    cache_break_at: int | None = None,
    session_id: str = SESSION,
    project: str = PROJECT,
) -> list[Json]:
    """Return the lines of a session file.

    Args:
        steps: the conversation.
        compact_after: after this many turns the window is compacted.
        subagent: whether a subagent talks on the side at the end.
        cache_break_at: the step at which the provider's cache is lost.
        session_id: of the session.
        project: the folder it works in.
    """
    return _ClaudeCode(session_id, project).write(steps, compact_after, subagent, cache_break_at)


class _ClaudeCode:
    def __init__(self, session_id: str, project: str) -> None:
        self._envelope = {
            "userType": "external", "cwd": project, "sessionId": session_id, "version": "2.1.325",
        }  # fmt: skip
        self._lines: list[Json] = []
        self._parent: str | None = None
        self._sent = 3_000
        self._cached = 0
        self._at = START.isoformat()

    def write(
        self, steps: Iterable[Step], compact_after: int | None, subagent: bool, lost: int | None
    ) -> list[Json]:
        self._lines.append({"type": "summary", "summary": "Fixing prices", "leafUuid": "x"})
        turns = 0
        for step in steps:
            self._at = step.at
            turns += bool(step.asked)
            if step.asked and compact_after is not None and turns == compact_after + 1:
                self._compact()
            if step.asked:
                self._user(step.asked)
            else:
                self._answer(step, cold=step.number == lost)
        if subagent:
            self._subagent()
        return self._lines

    def _line(self, kind: str, *, side: bool = False, **fields: Any) -> Json:
        uuid = f"00000000-0000-4000-8000-{len(self._lines):012d}"
        line = {
            "parentUuid": None if side else self._parent, "isSidechain": side, **self._envelope,
            "type": kind, "uuid": uuid, "timestamp": self._at, **fields,
        }  # fmt: skip
        if not side:
            self._parent = uuid
        self._lines.append(line)
        return line

    def _user(self, content: Any, **fields: Any) -> None:
        self._line("user", message={"role": "user", "content": content}, **fields)
        self._sent += len(json.dumps(content)) // 4

    def _answer(self, step: Step, *, cold: bool) -> None:
        read = 0 if cold else self._cached
        usage = {
            "input_tokens": 4, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": self._sent - read, "output_tokens": 40,
        }  # fmt: skip
        self._cached = self._sent
        blocks: list[Json] = [{"type": "text", "text": step.said}] if step.said else []
        blocks += [
            {"type": "tool_use", "id": _claude_id(call), "name": call.name, "input": call.arguments}
            for call in step.calls
        ]
        for block in blocks:
            message = {
                "id": f"msg_{step.number:04d}", "type": "message", "role": "assistant",
                "model": MODEL, "content": [block], "usage": usage,
            }  # fmt: skip
            self._line("assistant", message=message)
            self._sent += len(json.dumps(block)) // 4
        for call in step.calls:
            result = {
                "type": "tool_result", "tool_use_id": _claude_id(call), "content": call.output,
                **({"is_error": True} if call.failed else {}),
            }  # fmt: skip
            self._user([result], toolUseResult={"stdout": call.output, "stderr": ""})

    def _compact(self) -> None:
        self._parent = None
        about = {"trigger": "auto", "preTokens": self._sent}
        self._line("system", subtype="compact_boundary", content="Compacted", compactMetadata=about)
        self._sent = self._cached = 3_000
        said = "This session is being continued. So far: the prices were fixed."
        self._user(said, isCompactSummary=True, isVisibleInTranscriptOnly=True)

    def _subagent(self) -> None:
        self._line("user", side=True, message={"role": "user", "content": "Look for prices."})
        content = [{"type": "text", "text": "There are two."}]
        message = {"id": "msg_side", "role": "assistant", "model": MODEL, "content": content}
        self._line("assistant", side=True, message=message)


def _claude_id(call: Call) -> str:
    return f"toolu_{call.number:04d}"


# -- Codex ------------------------------------------------------------------------------------------


def codex(
    steps: Iterable[Step],
    *,
    compact_after: int | None = None,
    session_id: str = SESSION,
    project: str = PROJECT,
) -> list[Json]:
    """Return the lines of a rollout file."""
    meta = {
        "id": session_id, "timestamp": START.isoformat(), "cwd": project, "cli_version": "0.166.0",
        "base_instructions": {"text": SYSTEM},
    }  # fmt: skip
    lines = [_rollout(START.isoformat(), "session_meta", meta)]
    started = {"type": "task_started", "model_context_window": 258_400}
    lines.append(_rollout(START.isoformat(), "event_msg", started))
    lines.append(_rollout(START.isoformat(), "turn_context", {"cwd": project, "model": "gpt-5"}))
    aside = f"<environment_context>\n  <cwd>{project}</cwd>\n</environment_context>"
    lines.append(_rollout(START.isoformat(), "response_item", _item("user", aside)))
    turns, sent, total = 0, 3_000, 0
    for step in steps:
        turns += bool(step.asked)
        if step.asked and compact_after is not None and turns == compact_after + 1:
            history = [_item("user", "Please fix the prices."), _item("user", "Summary: all done.")]
            done = {"message": "Summary: all done.", "replacement_history": history}
            lines.append(_rollout(step.at, "compacted", done))
            sent = 3_000
        items = list(_items(step))
        lines += [_rollout(step.at, "response_item", item) for item in items]
        if not step.asked:
            total += sent + 40
            lines.append(_rollout(step.at, "event_msg", _token_count(sent, total)))
        sent += len(json.dumps(items)) // 4
    return lines


def _rollout(at: str, kind: str, payload: Json) -> Json:
    return {"timestamp": at, "type": kind, "payload": payload}


def _item(role: str, text: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _items(step: Step) -> Iterator[Json]:
    if step.asked:
        yield _item("user", step.asked)
        return
    yield {"type": "reasoning", "summary": [], "encrypted_content": f"gAAA{step.number}"}
    if step.said:
        yield _item("assistant", step.said)
    for call in step.calls:
        yield {
            "type": "function_call", "name": call.name, "arguments": json.dumps(call.arguments),
            "call_id": f"call_{call.number}",
        }  # fmt: skip
    for call in step.calls:
        yield {
            "type": "function_call_output",
            "call_id": f"call_{call.number}",
            "output": call.output,
        }


def _token_count(sent: int, total: int) -> Json:
    last = {
        "input_tokens": sent, "cached_input_tokens": max(0, sent - 1_500), "output_tokens": 40,
        "total_tokens": sent + 40,
    }  # fmt: skip
    info = {
        "last_token_usage": last,
        "total_token_usage": {"total_tokens": total},
        "model_context_window": 258_400,
    }
    return {"type": "token_count", "info": info}


# -- plain messages ---------------------------------------------------------------------------------


def chat(steps: Iterable[Step]) -> list[Json]:
    """Return the conversation as chat-completions messages."""
    messages: list[Json] = [{"role": "system", "content": SYSTEM}]
    for step in steps:
        if step.asked:
            messages.append({"role": "user", "content": step.asked})
            continue
        calls = [
            {
                "id": f"call_{call.number}", "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in step.calls
        ]  # fmt: skip
        answer: Json = {"role": "assistant", "content": step.said or None}
        messages.append({**answer, "tool_calls": calls} if calls else answer)
        messages += [
            {"role": "tool", "tool_call_id": f"call_{call.number}", "content": call.output}
            for call in step.calls
        ]
    return messages


def responses(steps: Iterable[Step]) -> Json:
    """Return the conversation as a request of the Responses API."""
    items = [item for step in steps for item in _items(step)]
    return {"model": "gpt-5", "instructions": SYSTEM, "input": items}


def anthropic(steps: Iterable[Step]) -> Json:
    """Return the conversation as a request of the Messages API."""
    messages: list[Json] = []
    for step in steps:
        if step.asked:
            messages.append({"role": "user", "content": step.asked})
            continue
        said = [{"type": "text", "text": step.said}] if step.said else []
        calls = [
            {"type": "tool_use", "id": _claude_id(call), "name": call.name, "input": call.arguments}
            for call in step.calls
        ]
        messages.append({"role": "assistant", "content": said + calls})
        results = [
            {"type": "tool_result", "tool_use_id": _claude_id(call), "content": call.output}
            for call in step.calls
        ]
        if results:
            messages.append({"role": "user", "content": results})
    return {"model": MODEL, "system": SYSTEM, "messages": messages}


def write_lines(path: Path, lines: Iterable[Json], *, end: bytes = b"") -> Path:
    """Write lines of JSON, packed if the name ends in `.gz`; `end` is put behind them as it is."""
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines) + end
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def write_json(path: Path, value: Any, indent: int | None = None) -> Path:
    """Write one JSON document."""
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    return path


EVERY_FORMAT = ("claude_code", "codex", "chat", "chat_lines", "responses", "anthropic")


def write_format(name: str, folder: Path, steps: list[Step]) -> Path:
    """Write the conversation in one of `EVERY_FORMAT` under a name that does not give it away."""
    path = folder / f"{name}.transcript"
    lines = {"claude_code": claude_code, "codex": codex, "chat_lines": chat}
    if name in lines:
        return write_lines(path, lines[name](steps))
    documents = {"chat": chat, "responses": responses, "anthropic": anthropic}
    return write_json(path, documents[name](steps))


def place_sessions(home: Path) -> dict[str, str]:
    """Put one session of each agent into a home, Codex's the newer one, and return the environment."""
    steps = conversation(turns=3)
    claude = home / "claude" / "projects" / "-home-ada-shop"
    rollouts = home / "codex" / "sessions" / "2026" / "03" / "02"
    for folder in (claude, rollouts):
        folder.mkdir(parents=True)
    first = write_lines(claude / f"{SESSION}.jsonl", claude_code(steps))
    write_lines(claude / "agent-1.jsonl", claude_code(steps))
    second = write_lines(rollouts / f"rollout-2026-03-02T09-00-00-{SESSION}.jsonl", codex(steps))
    os.utime(first, (1_709_370_000, 1_709_370_000))
    os.utime(second, (1_709_373_600, 1_709_373_600))
    return {"CLAUDE_CONFIG_DIR": str(home / "claude"), "CODEX_HOME": str(home / "codex")}
