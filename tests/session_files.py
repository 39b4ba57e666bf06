"""Session files of each kind, as their agents write them, with garbage in them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

SESSION = "5f8cbb78-38d3-47e9-9504-baa93bb166c9"
OTHER = "11111111-2222-4333-8444-555555555555"
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
Json = dict[str, Any]


def source(number: int, version: int = 0) -> str:
    """Return the text of a file that a tool read."""
    rows = (f"def function_{number}_{line}(value): return {line + version}" for line in range(80))
    return "\n".join(rows)


def dumped(lines: list[Json]) -> bytes:
    """Return lines as an agent writes them."""
    return b"".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        for line in lines
    )


class ClaudeCode:
    """Writes lines as Claude Code does: a tree by `parentUuid`, each block on a line of its own."""

    def __init__(self, session_id: str = SESSION) -> None:
        self.lines: list[Json] = []
        self._session_id = session_id
        self._last: str | None = None
        self._made = 0

    def line(self, kind: str, *, parent: str | None = "", **fields: Any) -> str:
        """Write one line of the tree and return its id."""
        self._made += 1
        uuid = f"00000000-0000-4000-8000-{self._made:012d}"
        at = (START + timedelta(minutes=self._made)).isoformat().replace("+00:00", "Z")
        self.lines.append(
            {
                "parentUuid": self._last if parent == "" else parent,
                "isSidechain": False,
                "cwd": "/repo",
                "sessionId": self._session_id,
                "version": "2.1.0",
                "type": kind,
                **fields,
                "uuid": uuid,
                "timestamp": at,
            }
        )
        self._last = uuid
        return uuid

    def user(self, text: str, **fields: Any) -> str:
        return self.line("user", message={"role": "user", "content": text}, **fields)

    def block(self, reply: str, block: Json, **fields: Any) -> str:
        message = {"id": reply, "role": "assistant", "model": "claude-x", "content": [block]}
        return self.line("assistant", message=message, **fields)

    def result(self, call: str, text: str, kept: Any, **fields: Any) -> str:
        block = {"tool_use_id": call, "type": "tool_result", "content": text}
        message = {"role": "user", "content": [block]}
        return self.line("user", message=message, toolUseResult=kept, **fields)

    def read(self, number: int, version: int = 0) -> None:
        """A thought, a call of Read, and its result with the line numbers that Read shows."""
        reply, call, path = f"msg_{self._made}", f"toolu_{self._made}", f"/repo/src/m{number}.py"
        self.block(reply, {"type": "thinking", "thinking": "look", "signature": "c2ln"})
        self.block(reply, _call(call, "Read", {"file_path": path}))
        text = source(number, version)
        shown = "\n".join(f"{n:>6}→{row}" for n, row in enumerate(text.split("\n"), 1))
        file = {"filePath": path, "content": text, "numLines": 80, "startLine": 1, "totalLines": 80}
        self.result(call, shown, {"type": "text", "file": file})

    def parallel(self) -> None:
        """Two calls of one answer; each result hangs on the block that made the call."""
        reply = f"msg_{self._made}"
        first = self.block(reply, _call("toolu_p1", "Bash", {"command": "make one"}))
        second = self.block(reply, _call("toolu_p2", "Bash", {"command": "make two"}))
        outputs = ["\n".join(f"{name} step {n}" for n in range(300)) for name in ("one", "two")]
        kept = [{"stdout": out, "stderr": "", "interrupted": False} for out in outputs]
        self.result("toolu_p2", outputs[1], kept[1], parent=second)
        self.result("toolu_p1", outputs[0], kept[0], parent=first)


def _call(call: str, name: str, arguments: Json) -> Json:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def claude_code(session_id: str = SESSION, files: int = 6) -> bytes:
    """Return a session with a compaction, a subagent, parallel calls, and files read twice."""
    made = ClaudeCode(session_id)
    made.lines.append({"type": "summary", "summary": "An older talk", "leafUuid": OTHER})
    made.user("An earlier request, before the compaction.")
    made.read(90)
    made.line("system", subtype="compact_boundary", content="Compacted", parent=None)
    made.user("Summary: the parser is half done.", isCompactSummary=True)
    made.user("Make the parser green. Never touch the lexer.")
    for number in range(files):
        made.read(number)
    last = made.lines[-1]["uuid"]
    made.user("Find all callers.", isSidechain=True, parent=None)
    made.block("msg_side", {"type": "text", "text": "There are three."}, isSidechain=True)
    attachment = {"type": "date", "date": "2026-03-02"}
    made.line("attachment", attachment=attachment, parent=last)
    made.parallel()
    for number in range(files):
        made.read(number, version=1)
    made.block("msg_last", {"type": "text", "text": "All green."})
    made.user("Good. Now the docs.")
    made.lines.append(
        {"type": "last-prompt", "leafUuid": made.lines[-1]["uuid"], "sessionId": session_id}
    )
    return dumped(made.lines)


def codex(files: int = 6) -> bytes:
    """Return a rollout of Codex with a compaction that brings its own history."""
    old = _said("user", "input_text", "An earlier request, summed up.")
    lines = [
        _codex("session_meta", {"id": SESSION, "cwd": "/repo", "cli_version": "0.166.0"}),
        _codex("response_item", _said("user", "input_text", "Gone with the compaction.")),
        _codex("compacted", {"message": "", "replacement_history": [old]}),
        _codex("turn_context", {"model": "gpt-5-codex", "cwd": "/repo"}),
        _codex("response_item", _said("user", "input_text", "Make the parser green.")),
        _codex("event_msg", {"type": "user_message", "message": "Make the parser green."}),
    ]
    for n in (*range(files), *range(files)):
        call, command = f"call_{len(lines)}", {"command": ["cat", f"src/m{n}.py"]}
        item = {
            "type": "function_call",
            "name": "shell",
            "arguments": json.dumps(command),
            "call_id": call,
        }
        output = {"type": "function_call_output", "call_id": call, "output": source(n)}
        lines += [_codex("response_item", item), _codex("response_item", output)]
    lines.append(_codex("response_item", _said("assistant", "output_text", "All green.")))
    lines.append(_codex("response_item", _said("user", "input_text", "Good. Now the docs.")))
    return dumped(lines)


def _codex(kind: str, payload: Json) -> Json:
    return {"timestamp": "2026-03-02T09:00:00.000Z", "type": kind, "payload": payload}


def _said(role: str, kind: str, text: str) -> Json:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def chat(files: int = 6) -> list[Json]:
    """Return a history as OpenAI's chat completions have it."""
    messages: list[Json] = [
        {"role": "system", "content": "You are a careful engineer."},
        {"role": "user", "content": "Make the parser green."},
    ]
    for n in (*range(files), *range(files)):
        call = {"name": "read_file", "arguments": json.dumps({"path": f"src/m{n}.py"})}
        name = f"call_{len(messages)}"
        asked = {"id": name, "type": "function", "function": call}
        messages.append({"role": "assistant", "content": None, "tool_calls": [asked]})
        messages.append({"role": "tool", "tool_call_id": name, "content": source(n)})
    return [*messages, {"role": "assistant", "content": "All green."},
            {"role": "user", "content": "Good. Now the docs."}]  # fmt: skip


def anthropic(files: int = 6) -> list[Json]:
    """Return a history as Anthropic's messages have it."""
    messages: list[Json] = [{"role": "user", "content": "Make the parser green."}]
    for n in (*range(files), *range(files)):
        name = f"toolu_{len(messages)}"
        use = _call(name, "read_file", {"path": f"src/m{n}.py"})
        block = {"type": "tool_result", "tool_use_id": name, "content": source(n)}
        messages.append({"role": "assistant", "content": [use]})
        messages.append({"role": "user", "content": [block]})
    return [*messages, {"role": "assistant", "content": "All green."},
            {"role": "user", "content": "Good. Now the docs."}]  # fmt: skip


def responses(files: int = 6) -> list[Json]:
    """Return the input of a request to OpenAI's Responses."""
    return [
        line["payload"]
        for line in map(json.loads, codex(files).splitlines())
        if line["type"] == "response_item"
    ][1:]


def all_files() -> dict[str, bytes]:
    """Return a file of every kind by its name."""
    return {
        f"{SESSION}.jsonl": claude_code(),
        f"rollout-2026-03-02T09-00-00-{SESSION}.jsonl": codex(),
        "chat.json": json.dumps(chat(), indent=2).encode(),
        "chat.jsonl": dumped(chat()),
        "anthropic.json": json.dumps({"system": "Be brief.", "messages": anthropic()}).encode(),
        "responses.json": json.dumps({"model": "gpt-5", "input": responses()}).encode() + b"\n",
    }
