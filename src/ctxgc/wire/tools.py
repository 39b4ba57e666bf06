"""What a tool call is about: the file it reads or edits, the command it runs.

Tools are recognised by the shape of their names and arguments, not by a list of products: a file-like
argument and a verb in the name are enough. A call of an unknown tool counts as a command.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, TypeGuard

import msgspec

from ctxgc.core import Access

_PATH_KEYS = ("file_path", "path", "filename", "file", "notebook_path", "target_file", "filepath")
_COMMAND_KEYS = ("command", "cmd", "script", "shell_command")
_READ = re.compile(r"(^|_|\b)(read|view|open|cat|get_file|show)", re.IGNORECASE)
_EDIT = re.compile(r"(edit|write|create|replace|patch|insert|save|update_file)", re.IGNORECASE)
_SEARCH = re.compile(r"(grep|search|glob|find|list|ls)", re.IGNORECASE)
_SHELL_VIEW = re.compile(r"^\s*(?:cd\s+\S+\s*&&\s*)?(cat|nl|head|tail|less|bat|sed\s+-n)\b")
_SED_RANGE = re.compile(r"['\"]?(\d+),(\d+)p['\"]?")
_FAILED = re.compile(
    r"\A\s*(?:error\b|traceback \(most recent|.{0,80}command not found)"
    r"|exit(?:ed with)? (?:code|status):? [1-9]|<returncode>[1-9]|\A.{0,160}<tool_use_error>",
    re.IGNORECASE | re.DOTALL,
)
_HEAD = 400
_WHOLE_FILE_LINES = 1_000_000


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one tool call does."""

    access: Access | None = None
    path: str | None = None
    line_range: tuple[int, int] | None = None
    command: str | None = None

    def failed(self, output: str) -> bool:
        """Return whether an output of this call looks like a failure; the content of a file never does."""
        if self.access == "read":
            return False
        return _FAILED.search(output[:_HEAD]) is not None


def understand(name: str, arguments: str) -> ToolUse:
    """Return what a call with this name and these JSON arguments is about."""
    given = _arguments(arguments)
    command = _first_text(given, _COMMAND_KEYS)
    if command is not None:
        return _shell(command)
    path = _first_text(given, _PATH_KEYS)
    if path is None or _SEARCH.search(name):
        return ToolUse(access="run", command=f"{name} {_canonical(given)}")
    if _EDIT.search(name):
        return ToolUse(access="edit", path=path)
    if _READ.search(name):
        return ToolUse(access="read", path=path, line_range=_lines(given))
    return ToolUse(access="run", command=f"{name} {_canonical(given)}")


def strings_of(arguments: str) -> str:
    """Return all values of JSON arguments, one per line, as the model means them."""
    try:
        waiting = [json.loads(arguments)]
    except (ValueError, RecursionError):
        return arguments
    found: list[str] = []
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            waiting.extend(reversed(list(value.values() if isinstance(value, dict) else value)))
        elif value is not None:
            found.append(str(value))
    return "\n".join(found)


def _shell(command: str) -> ToolUse:
    if _SHELL_VIEW.match(command) and not re.search(r"[|;<>`$]|&&.*&&", command):
        path = _last_word(command)
        if path is not None:
            found = _SED_RANGE.search(command)
            lines = (int(found[1]), int(found[2])) if found else None
            valid = lines if lines is not None and lines[0] <= lines[1] else None
            return ToolUse(access="read", path=path, line_range=valid)
    return ToolUse(access="run", command=command)


def _last_word(command: str) -> str | None:
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    last = words[-1] if len(words) > 1 else ""
    return last if last and not last.startswith("-") else None


def _lines(given: dict[str, Any]) -> tuple[int, int] | None:
    """Read `offset`/`limit`, `start_line`/`end_line` or `view_range` as the first and last line."""
    span = given.get("view_range") or given.get("line_range")
    ends = span if isinstance(span, list) and len(span) == 2 else ()
    first, last = ends or (given.get("start_line"), given.get("end_line"))
    if _is_line(first) and _is_line(last):
        return (first, last) if first <= last else None
    offset, limit = given.get("offset"), given.get("limit")
    start = offset if _is_line(offset) else 1
    if _is_line(limit):
        return (start, start + max(0, limit - 1))
    return (start, _WHOLE_FILE_LINES) if start > 1 else None


def _is_line(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _arguments(arguments: str) -> dict[str, Any]:
    try:
        given = json.loads(arguments) if arguments else {}
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def _first_text(given: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = given.get(key)
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return " ".join(value)
        if isinstance(value, str) and value:
            return value
    return None


def _canonical(given: dict[str, Any]) -> str:
    return json.dumps(given, sort_keys=True, ensure_ascii=True)
