"""What was done to a heap, replayed without one: links, tiers, supersession, sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ctxgc.core import ContextSegment
from tests.properties import naive_engine


class History:
    """All that was done to a heap, replayed: links, tiers, supersession, sums of what came and went."""

    def __init__(self) -> None:
        self.segments: dict[str, ContextSegment] = {}
        self.places: dict[str, int] = {}
        self.working: set[str] = set()
        self.pinned: set[str] = set()
        self.links: set[tuple[str, str]] = set()
        self.superseded: dict[str, tuple[str, str]] = {}
        self.files: list[str] = []
        self.opened: list[str] = []
        self.first_request: str | None = None
        self.ingested = (0, 0)
        self.deleted = (0, 0)
        self._arrivals = 0

    def add_all(self, batch: Sequence[ContextSegment]) -> None:
        """Take in a batch; what is known already changes nothing."""
        new = {s.segment_id: s for s in batch if s.segment_id not in self.segments}
        older = set(self.segments)
        for s in new.values():
            self._take(s, self._arrivals)
        self.links |= naive_engine.all_links(new.values())
        for s in new.values():
            self._supersede(s, older)
            older.add(s.segment_id)

    def replace(self, segment_id: str, stand_in: ContextSegment) -> None:
        """Put a smaller segment in the place of one, with its links out and those that lead to it."""
        original = self.segments[segment_id]
        out = {target for source, target in self.links if source == segment_id}
        if only_derived(original):
            out.discard(str(original.derived_from))
        into = {source for source, target in self.links if target == segment_id}
        self._take(stand_in, self.places[segment_id])
        me = stand_in.segment_id
        self.links |= {(me, target) for target in (*out, segment_id)}
        self.links |= {(source, me) for source in into if source != me}
        self.working.discard(segment_id)

    def remove(self, segment_id: str) -> None:
        gone = self.segments.pop(segment_id)
        for group in (self.working, self.pinned):
            group.discard(segment_id)
        self.superseded.pop(segment_id, None)
        self.links = {pair for pair in self.links if segment_id not in pair}
        self.deleted = (self.deleted[0] + 1, self.deleted[1] + naive_engine.tokens_of(gone))

    def stash(self, segment_id: str) -> None:
        self.working.discard(segment_id)

    def recall(self, segment_id: str) -> None:
        """Bring a segment back; what stands in its place leaves."""
        if segment_id in self.working:
            return
        self._enter(self.segments[segment_id])
        self.working -= {
            source
            for source, target in self.links
            if target == segment_id
            and self.segments[source].derived_from == segment_id
            and self.places[source] == self.places[segment_id]
            and source != segment_id
        }

    def annotate(self, segment_id: str, said: dict[str, Any]) -> None:
        """Change what is said about a segment; its links are known apart from it."""
        self.segments[segment_id] = msgspec.structs.replace(self.segments[segment_id], **said)

    def open_file(self, path: str) -> None:
        self.opened = [path, *(other for other in self.opened if other != path)]

    def recent_files(self) -> list[str]:
        return list(dict.fromkeys([*self.opened, *self.files]))

    def in_order(self) -> list[str]:
        """Return the working segments in order of arrival, a stand-in where its original stood."""
        return sorted((s for s in self.segments if s in self.working), key=self.places.__getitem__)

    def _take(self, s: ContextSegment, place: int) -> None:
        self.segments[s.segment_id] = s
        self.places[s.segment_id] = place
        self._arrivals += 1
        self.ingested = (self.ingested[0] + 1, self.ingested[1] + naive_engine.tokens_of(s))
        if s.pinned:
            self.pinned.add(s.segment_id)
        if s.tier == "working":
            self._enter(s)

    def _enter(self, s: ContextSegment) -> None:
        self.working.add(s.segment_id)
        if s.file_path is not None and s.access is not None:
            self.files = [s.file_path, *(path for path in self.files if path != s.file_path)]
        if naive_engine.is_request(s) and self.first_request is None:
            self.first_request = naive_engine.message_of(s)

    def _supersede(self, new: ContextSegment, older: set[str]) -> None:
        for segment_id in older - set(self.superseded):
            stale = self.segments[segment_id]
            how = how_superseded(stale, new)
            if how is not None:
                resolved = stale.failed and not new.failed
                self.superseded[segment_id] = (new.segment_id, "resolved" if resolved else how)


def only_derived(segment: ContextSegment) -> bool:
    """Tell whether nothing but `derived_from` names the segment that it names."""
    others = {*segment.references, segment.reply_to, *segment.tags}
    return segment.derived_from is not None and others.isdisjoint(
        {segment.derived_from, f"ref:{segment.derived_from}"}
    )


def how_superseded(older: ContextSegment, new: ContextSegment) -> str | None:
    """Return how an arrival makes an older segment stale, None when it does not."""
    if "tool_call" in (new.part, older.part):
        return None
    if new.command is not None and older.command == new.command:
        return "re-run"
    same_file = older.file_path is not None and older.file_path == new.file_path
    if same_file and {seen(older), seen(new)} <= {"read", "edit"} and outdated(older, new):
        return "re-read" if seen(new) == "read" else "edited"
    outputs = older.type in ("log", "code") and new.type in ("log", "code")
    return "identical" if outputs and older.text == new.text and len(new.text) >= 40 else None


def seen(segment: ContextSegment) -> str | None:
    """Return how a segment came by its file: code that somebody put in says what the file holds."""
    put_in = segment.type == "code" and segment.part is None and segment.access is None
    return "read" if put_in else segment.access


def outdated(older: ContextSegment, new: ContextSegment) -> bool:
    """A failed access is over when it is tried again; a view when a success covers or changes it."""
    if older.failed:
        return seen(new) in (seen(older), "edit")
    if seen(older) != "read" or new.failed:
        return False
    first, last = new.line_range or (0, 10**9)
    if new.access == "edit":
        return older.line_range is None or (
            first <= older.line_range[1] and older.line_range[0] <= last
        )
    if older.line_range is None:
        return new.line_range is None
    return first <= older.line_range[0] and older.line_range[1] <= last
