"""Big tool outputs: stashed as they arrive, so that they enter the conversation evacuated.

First the original is durable in the stash; then the agent gets a text with the head, the tail, the
matching lines and a tombstone that names the exact call that shows the rest.
"""

from __future__ import annotations

import os
import re
import time
from base64 import b32encode
from typing import Any

from ctxgc.agents.events import HookSettings, log_event
from ctxgc.agents.transcript import last_request, size_of
from ctxgc.session import (
    add_to_inbox,
    is_tombstone,
    recall_call,
    recall_template,
    short_command,
    stub_at_birth,
)

# -- What the agent is likely to look for in an output


_MOST_WORDS = 24
_WORD = re.compile(r"[\w][\w./:@-]{2,80}\w")


def words_in(*texts: str) -> list[str]:
    """Return the words of texts to search for, without repeats, the longest first."""
    found = {word.lower() for text in texts for word in _WORD.findall(text[:4_000])}
    return sorted(found, key=lambda word: (-len(word), word))[:_MOST_WORDS]


# -- Tool outputs as agents report them


Path = tuple[str | int, ...]

_PERSISTED = ("persistedOutputPath", "persistedOutputSize")
MOST_BYTES = 16 << 20
_SAME = 1_000

SHOWN = ("stdout", "stderr", "content", "result", "output", "text")
"""Keys whose text is what the model sees: Bash, Grep, WebFetch, background output, MCP blocks."""

_UNTOUCHED = frozenset(
    {
        "Write", "Edit", "MultiEdit", "NotebookEdit", "TodoWrite", "Task", "Agent", "ExitPlanMode",
        "AskUserQuestion", "Skill", "apply_patch", "update_plan",
    }
)  # fmt: skip


def _is_ours(tool: str) -> bool:
    """Return whether a tool is one of ours; what it recalls must not be moved out again."""
    return tool.rpartition("__")[2].startswith("context_") and "ctxgc" in tool


def texts_of(tool: str, output: Any) -> list[tuple[Path, str]]:
    """Return the texts of an output that the model will see, each with its path."""
    if tool in _UNTOUCHED or _is_ours(tool):
        return []
    if isinstance(output, str):
        return [((), output)]
    if isinstance(output, list):
        return _blocks((), output)
    return _fields(output) if isinstance(output, dict) else []


def _whole_output(output: Any) -> Any:
    """Return an output with its whole text if the agent cut it and put the rest into a file."""
    if not isinstance(output, dict) or not isinstance(output.get("stdout"), str):
        return output
    shown, path = output["stdout"], output.get(_PERSISTED[0])
    if not isinstance(path, str) or not 0 < size_of(path) <= MOST_BYTES:
        return output
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:  # noqa: PTH123
        text = file.read()
    if not text.startswith(shown[:_SAME]):
        return output
    # Without these keys the agent shows the given text, not the beginning of its own file.
    rest = {key: value for key, value in output.items() if key not in _PERSISTED}
    return {**rest, "stdout": text}


def _with_texts(output: Any, texts: dict[Path, str]) -> Any:
    """Return an output of the same shape with other texts at these paths; the argument is not changed."""
    for path, text in texts.items():
        output = _replaced(output, path, text)
    return output


def _fields(output: dict[str, Any]) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for key in SHOWN:
        value = output.get(key)
        if isinstance(value, str):
            found.append(((key,), value))
        elif isinstance(value, list):
            found.extend(_blocks((key,), value))
    file = output.get("file")
    if isinstance(file, dict) and isinstance(file.get("content"), str):
        found.append((("file", "content"), file["content"]))
    return found


def _blocks(path: Path, blocks: list[Any]) -> list[tuple[Path, str]]:
    return [
        ((*path, place, "text"), block["text"])
        for place, block in enumerate(blocks)
        if isinstance(block, dict)
        and block.get("type") in ("text", "input_text", "output_text")
        and isinstance(block.get("text"), str)
    ]


def _replaced(value: Any, path: Path, text: str) -> Any:
    if not path:
        return text
    step, rest = path[0], path[1:]
    copied = value.copy()
    copied[step] = _replaced(value[step], rest, text)
    return copied


# -- The hook


Json = dict[str, Any]

LIMIT = 16_000
LIMITS = {"Read": 60_000}
"""An output with more characters is big. A file is read to be worked on, so it may be longer."""

_LIMIT_VARIABLE = "CTXGC_HUGE_OUTPUT"


def post_tool_use(settings: HookSettings, said: Json) -> Json | None:
    """Return the output that replaces a big one; None leaves it unchanged."""
    tool, output = str(said.get("tool_name", "")), _whole_output(said.get("tool_response"))
    big = [
        (path, text)
        for path, text in texts_of(tool, output)
        if len(text) > _limit_of(tool) and not is_tombstone(text)
    ]
    if not big:
        return None
    words = words_in(*_strings(said.get("tool_input")), last_request(said.get("transcript_path")))
    texts = {path: _evacuate(settings, said, path, text, words) for path, text in big}
    return _answer(settings.agent, output, texts)


def _limit_of(tool: str) -> int:
    """Return the most characters of an output of a tool that is not big; the environment may set it."""
    said = os.environ.get(_LIMIT_VARIABLE, "")
    return int(said) if said.isdecimal() else LIMITS.get(tool, LIMIT)


def _evacuate(settings: HookSettings, said: Json, path: Path, text: str, words: list[str]) -> str:
    handle = f"h-{b32encode(os.urandom(10)).decode().lower()}"
    session = f"{settings.agent}/{str(said.get('session_id') or 'unknown')[:80]}"
    add_to_inbox(settings.store_url, session, handle, _segment(said, path, text, handle))
    tool = str(said.get("tool_name", ""))
    call = recall_call(handle, recall_template(settings.recall))
    stub = stub_at_birth(text, _what(said), call, words)
    log_event(settings, "post-tool-use", f"{tool} {len(text)} characters -> {len(stub)}, {handle}")
    return stub


def _segment(said: Json, path: Path, text: str, handle: str) -> Json:
    """Return a segment as JSON values."""
    given = said.get("tool_input")
    given = given if isinstance(given, dict) else {}
    file = given.get("file_path")
    command = given.get("command")
    return {
        "segment_id": f"seg-{handle[2:]}",
        "text": text,
        "type": "code" if isinstance(file, str) else "log",
        "role": "tool",
        "tier": "stashed",
        "trust": "tool",
        "tokens": len(text) // 4,
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tags": [f"tool:{said.get('tool_name', '')}", f"field:{'.'.join(map(str, path))}"],
        **({"file_path": file, "access": "read"} if isinstance(file, str) and file else {}),
        **({"command": command} if isinstance(command, str) and command else {}),
    }


def _what(said: Json) -> str:
    given = said.get("tool_input")
    given = given if isinstance(given, dict) else {}
    for key, words in (("command", "output of"), ("file_path", "read of"), ("pattern", "hits of")):
        if isinstance(given.get(key), str) and given[key]:
            named = " ".join(given[key].split())
            return f"{words} {short_command(named)}"
    return f"output of {said.get('tool_name') or 'a tool'}"


def _answer(agent: str, output: Any, texts: dict[Path, str]) -> Json:
    if agent == "codex":
        # Codex has no other way to replace an output.
        return {"decision": "block", "reason": "\n".join(texts.values())}
    new = {"hookEventName": "PostToolUse", "updatedToolOutput": _with_texts(output, texts)}
    return {"hookSpecificOutput": new}


def _strings(value: Any) -> list[str]:
    values = value.values() if isinstance(value, dict) else [value]
    return [each for each in values if isinstance(each, str)]
