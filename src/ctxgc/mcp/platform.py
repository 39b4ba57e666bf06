"""The platform: what the editor or host works on. Its segments are roots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxgc.errors import InputError
from ctxgc.mcp.context import Context

MOST_FILES = 100


def set_working_state(context: Context, said: Mapping[str, Any]) -> None:
    """Note what is said; what is not mentioned stays, and an empty text clears it.

    Raises:
        InputError: a line range without a file, or too many files; nothing changed.
    """
    saved = context.saved
    active = said.get("active_file", saved.active_file) or None
    lines = said.get("line_range")
    if lines is not None and active is None:
        raise InputError(
            "a line_range needs an active_file", hint="name the file", field="line_range"
        )
    files = _files(said.get("open_files"))
    if "task_id" in said:
        saved.task_id = said["task_id"] or None
    if "depends_on" in said:
        saved.depends_on = list(said["depends_on"])
    if "active_file" in said or lines is not None:
        saved.active_file, saved.active_range = active, lines
    if files is not None:
        saved.open_files = [path for path, line in files if line is None]
        saved.breakpoints = [(path, line) for path, line in files if line is not None]
    for path in (active, *saved.open_files):
        if path is not None:
            context.heap.open_file(path)


def _files(named: Sequence[str] | None) -> list[tuple[str, int | None]] | None:
    """Read `path` and `path:line`; the latter is a breakpoint."""
    if named is None:
        return None
    if len(named) > MOST_FILES:
        raise InputError(
            f"{len(named)} open files are too many",
            hint=f"at most {MOST_FILES}",
            field="open_files",
        )
    found: list[tuple[str, int | None]] = []
    for name in named:
        path, colon, line = name.rpartition(":")
        is_line = colon and path and line.isascii() and line.isdigit() and len(line) < 10
        found.append((path, int(line)) if is_line else (name, None))
    return found
