"""Supersession: what an arriving segment makes stale.

A file read again, or edited; a command run again; the same output once more; an error whose command
has succeeded since. Each arrival looks only at the newest live views of its own file, command or text,
so its work does not grow with the heap.
"""

from __future__ import annotations

from hashlib import blake2b

from ctxgc.core.segment import ContextSegment, Superseding

VIEWS_PER_FILE = 32
IDENTICAL_MIN_CHARS = 40

LineRange = tuple[int, int] | None


class Supersession:
    """The live views of each file, the last output of each command, and the last copy of each text."""

    __slots__ = ("_outputs", "_texts", "_views")

    def __init__(self) -> None:
        self._views: dict[str, dict[str, LineRange]] = {}
        self._outputs: dict[str, str] = {}
        self._texts: dict[bytes, str] = {}

    def arrive(self, segment: ContextSegment) -> dict[str, Superseding]:
        """Return the older segments that this one supersedes, and how. Remembers the new one."""
        stale: dict[str, Superseding] = {}
        if segment.file_path is not None and segment.access in ("read", "edit"):
            stale.update(self._file(segment, segment.file_path))
        if segment.command is not None and segment.part != "tool_call":
            stale.update(self._command(segment, segment.command))
        if _repeatable(segment):
            for older in self._identical(segment):
                stale.setdefault(older, "identical")
        stale.pop(segment.segment_id, None)
        return stale

    def forget(self, segment: ContextSegment) -> None:
        """Drop a segment that left, so that it neither supersedes nor is superseded later."""
        views = self._views.get(segment.file_path or "")
        if views is not None:
            views.pop(segment.segment_id, None)
        if segment.command is not None and self._outputs.get(segment.command) == segment.segment_id:
            del self._outputs[segment.command]
        if _repeatable(segment):
            key = _digest(segment.text)
            if self._texts.get(key) == segment.segment_id:
                del self._texts[key]

    def _file(self, segment: ContextSegment, path: str) -> dict[str, Superseding]:
        views = self._views.setdefault(path, {})
        how: Superseding = "re-read" if segment.access == "read" else "edited"
        stale = [view for view, lines in views.items() if _covers(segment, lines)]
        for view in stale:
            del views[view]
        if segment.access == "read":
            views[segment.segment_id] = segment.line_range
            if len(views) > VIEWS_PER_FILE:
                del views[next(iter(views))]
        return dict.fromkeys(stale, how)

    def _command(self, segment: ContextSegment, command: str) -> dict[str, Superseding]:
        older = self._outputs.get(command)
        self._outputs[command] = segment.segment_id
        return {} if older is None else {older: "re-run"}

    def _identical(self, segment: ContextSegment) -> list[str]:
        key = _digest(segment.text)
        older = self._texts.get(key)
        self._texts[key] = segment.segment_id
        return [] if older is None else [older]


def _repeatable(segment: ContextSegment) -> bool:
    """Only outputs repeat themselves; what a person or the agent says twice was meant twice."""
    return segment.type in ("log", "code") and len(segment.text) >= IDENTICAL_MIN_CHARS


def _covers(segment: ContextSegment, lines: LineRange) -> bool:
    """A read replaces the views inside its range; an edit makes every view it touches stale."""
    mine = segment.line_range
    if mine is None:
        return True
    if lines is None:
        return segment.access == "edit"
    if segment.access == "edit":
        return mine[0] <= lines[1] and lines[0] <= mine[1]
    return mine[0] <= lines[0] and lines[1] <= mine[1]


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
