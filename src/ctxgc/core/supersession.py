"""Supersession: what an arriving segment makes stale.

A file read again, or edited; a command run again; the same output once more; an error that a later
success resolved. Each arrival looks only at the newest live views of its own file, command or text, so
its work does not grow with the heap. What is stashed is followed too: it must not come back as if
nothing had happened since.
"""

from __future__ import annotations

from collections.abc import Iterable

from ctxgc.core.segment import ContextSegment, Superseding

VIEWS_PER_FILE = 32
_IDENTICAL_MIN_CHARS = 40


class Supersession:
    """The live views of each file, the last output of each command, and the last copy of each text."""

    __slots__ = ("_outputs", "_texts", "_views")

    def __init__(self) -> None:
        self._views: dict[str, tuple[ContextSegment, ...]] = {}
        self._outputs: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        """By the text itself, which the segment holds anyway: a digest would only add to that."""

    def arrive(self, segment: ContextSegment) -> dict[str, Superseding]:
        """Return the older segments that this one supersedes, and how. Remembers the new one."""
        stale: dict[str, Superseding] = {}
        # A call says what is wanted; only its result says what is so.
        if segment.part == "tool_call":
            return stale
        if segment.file_path is not None and segment.access in ("read", "edit"):
            stale.update(self._file(segment, segment.file_path))
        if segment.command is not None:
            stale.update(self._command(segment, segment.command))
        if _repeatable(segment):
            for older in self._identical(segment):
                stale.setdefault(older, "identical")
        stale.pop(segment.segment_id, None)
        return stale

    def forget(self, segment: ContextSegment) -> None:
        """Drop a segment that is gone or stale, so that no later arrival finds it."""
        segment_id = segment.segment_id
        if (path := segment.file_path) in self._views:
            self._keep_views(path, (v for v in self._views[path] if v.segment_id != segment_id))
        if segment.command is not None and self._outputs.get(segment.command) == segment_id:
            del self._outputs[segment.command]
        if _repeatable(segment) and self._texts.get(segment.text) == segment_id:
            del self._texts[segment.text]

    def _file(self, segment: ContextSegment, path: str) -> dict[str, Superseding]:
        views = self._views.get(path, ())
        how: Superseding = "re-read" if segment.access == "read" else "edited"
        stale = {view.segment_id: how for view in views if _outdates(segment, view)}
        live = [view for view in views if view.segment_id not in stale]
        if segment.access == "read" or segment.failed:
            live.append(segment)
        self._keep_views(path, live[-VIEWS_PER_FILE:])
        return stale

    def _keep_views(self, path: str, views: Iterable[ContextSegment]) -> None:
        kept = tuple(views)
        if kept:
            self._views[path] = kept
        else:
            self._views.pop(path, None)

    def _command(self, segment: ContextSegment, command: str) -> dict[str, Superseding]:
        older = self._outputs.get(command)
        self._outputs[command] = segment.segment_id
        return {} if older is None else {older: "re-run"}

    def _identical(self, segment: ContextSegment) -> list[str]:
        # Out and in again, so that the key is the text of the newest and no older one is kept alive.
        older = self._texts.pop(segment.text, None)
        self._texts[segment.text] = segment.segment_id
        return [] if older is None else [older]


def _repeatable(segment: ContextSegment) -> bool:
    """Only outputs repeat themselves; what a person or the agent says twice was meant twice."""
    if segment.part == "tool_call" or len(segment.text) < _IDENTICAL_MIN_CHARS:
        return False
    return segment.type in ("log", "code")


def _outdates(segment: ContextSegment, view: ContextSegment) -> bool:
    """A failed access is outdated by the next of its kind; a view by a success that covers it."""
    if view.failed:
        return segment.access in (view.access, "edit")
    return not segment.failed and _covers(segment, view.line_range)


def _covers(segment: ContextSegment, lines: tuple[int, int] | None) -> bool:
    """A read replaces the views inside its range; an edit makes every view it touches stale."""
    mine = segment.line_range
    if mine is None:
        return True
    if lines is None:
        return segment.access == "edit"
    if segment.access == "edit":
        return mine[0] <= lines[1] and lines[0] <= mine[1]
    return mine[0] <= lines[0] and lines[1] <= mine[1]
