"""Big tool outputs: stashed as they arrive, so that they enter the conversation evacuated.

First the original is durable in the stash; then the agent gets a text with the head, the tail, the
matching lines and a tombstone that names the exact call that shows the rest.
"""

from __future__ import annotations

import os
import re
import time
from base64 import b32encode
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from ctxgc.agents.events import HookSettings, log_event
from ctxgc.agents.transcript import last_request, size_of
from ctxgc.session import (
    add_to_inbox,
    is_tombstone,
    moved_note,
    recall_call,
    recall_template,
    short_command,
    with_gaps,
)

# -- The lines that stay


HEAD, TAIL, MATCHING = 1_300, 1_300, 1_600
"""Characters that stay of each."""

MOST_LINE = 240
COMMON = 40
"""A word in more lines than this is too common to search for."""

_MOST_WORDS = 24
ERRORS = (
    "error", "exception", "traceback", "failed", "failure", "fatal", "panic", "assert", "denied",
)  # fmt: skip
_WORD = re.compile(r"[\w][\w./:@-]{2,80}\w")
_NEAREST_ERRORS = 6


def words_in(*texts: str) -> list[str]:
    """Return the words of texts to search for, without repeats, the longest first."""
    found = {word.lower() for text in texts for word in _WORD.findall(text[:4_000])}
    return sorted(found, key=lambda word: (-len(word), word))[:_MOST_WORDS]


def excerpt(text: str, words: Iterable[str]) -> str:
    """Return the lines of a text that stay, with marks for the others."""
    lines = text.split("\n")
    kept = {*_within(lines, range(len(lines)), HEAD)}
    kept.update(_within(lines, range(len(lines) - 1, -1, -1), TAIL))
    matching = (n for n in _best_lines(text, lines, words) if n not in kept)
    kept.update([*_within(lines, matching, MATCHING)])
    for number in kept:
        lines[number] = _short(lines[number])
    return "\n".join(with_gaps(lines, sorted(kept), _missing))


def _within(lines: list[str], order: Iterable[int], room: int) -> Iterable[int]:
    for number in order:
        room -= min(len(lines[number]), MOST_LINE) + 1
        if room < 0:
            return
        yield number


def _best_lines(text: str, lines: list[str], words: Iterable[str]) -> list[int]:
    """Return the matching lines, best first: rare words weigh more, an error as much as a rare word."""
    lowered = text.lower()
    if len(lowered) != len(text):  # the lower case of some letters is longer
        lowered = text
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    worth: dict[int, float] = {}
    for word in words:
        found = _lines_with(lowered, starts, word, COMMON + 1)
        for number in found if len(found) <= COMMON else ():
            worth[number] = worth.get(number, 0.0) + 1 / len(found)
    for number in _error_lines(lowered, starts):
        worth[number] = worth.get(number, 0.0) + 0.5
    return sorted(worth, key=lambda number: (-worth[number], number))


def _error_lines(lowered: str, starts: list[int]) -> list[int]:
    found = sorted({n for word in ERRORS for n in _ends(lowered, starts, word)})
    return [*found[:_NEAREST_ERRORS], *found[-_NEAREST_ERRORS:]]


def _ends(lowered: str, starts: list[int], word: str) -> list[int]:
    """Return the first and the last lines with a word."""
    first = _lines_with(lowered, starts, word, _NEAREST_ERRORS)
    last: list[int] = []
    end = len(lowered)
    while len(last) < _NEAREST_ERRORS and (place := lowered.rfind(word, 0, end)) >= 0:
        last.append(bisect_right(starts, place) - 1)
        end = starts[last[-1]]
    return [*first, *last]


def _lines_with(lowered: str, starts: list[int], word: str, most: int) -> list[int]:
    found: list[int] = []
    place = lowered.find(word)
    while place >= 0 and len(found) < most:
        found.append(bisect_right(starts, place) - 1)
        place = lowered.find(word, starts[found[-1] + 1])
    return found


def _missing(first: int, following: int) -> str:
    lines = f"line {following}" if following == first + 1 else f"lines {first + 1} to {following}"
    return f"[... {lines} ...]"


def _short(line: str) -> str:
    if len(line) <= MOST_LINE:
        return line
    return f"{line[:MOST_LINE]} [... {len(line) - MOST_LINE} characters ...]"


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
    stub = f"{_tombstone(settings, said, text, handle)}\n{excerpt(text, words)}"
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
        "tokens": _tokens(text),
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tags": [f"tool:{said.get('tool_name', '')}", f"field:{'.'.join(map(str, path))}"],
        **({"file_path": file, "access": "read"} if isinstance(file, str) and file else {}),
        **({"command": command} if isinstance(command, str) and command else {}),
    }


def _tombstone(settings: HookSettings, said: Json, text: str, handle: str) -> str:
    lines = text.count("\n") + 1
    call = recall_call(handle, recall_template(settings.recall))
    return moved_note(
        _what(said),
        f"about {_tokens(text)}",
        f"{lines} lines are too many for the context; head, tail and matching lines stay",
        recall=f'{call}; for a part add lines=[first, last] or pattern="text"',
    )


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


def _tokens(text: str) -> int:
    return len(text) // 4
