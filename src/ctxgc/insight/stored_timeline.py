"""The timeline of a session in a store, from its documents alone: nothing is opened or changed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ctxgc.collector import GCEngine, GCResult
from ctxgc.core import ContextSegment, Heap, utc_now
from ctxgc.economics import ModelPrice, sheet_of
from ctxgc.insight.cost import Spend, prices_in_use, spend_of
from ctxgc.insight.segment_reason import stored_heap
from ctxgc.insight.timeline import (
    CacheState,
    ChangeKind,
    Form,
    Mark,
    SegmentKind,
    SessionTimeline,
    SpanBook,
    TimelineChange,
    TimelineRequest,
    TimelineSegment,
    segment_kind,
    segment_label,
)
from ctxgc.session import Journal, JournalRequest, ViewChange, price_sheet, read_journal
from ctxgc.stores import Store
from ctxgc.wire.transcripts import Usage

_CAME_BACK = {
    "undo": "the collection was undone",
    "recall": "it was recalled",
    "restore": "a checkpoint was restored",
}
_LEFT = {
    "rewind": "the host took it back",
    "restore": "a checkpoint was restored",
    "thinking": "thinking that the provider refuses after an edit",
    "copies": "a copy: its lines are shown elsewhere",
    "delete": "what it was about was deleted",
    "undo": "the collection that put it there was undone",
    "notice": "a newer note takes its place",
}
_BESIDE: dict[str, SegmentKind] = {"system": "system", "plugin": "tools", "enrichment": "system"}


def timeline_of_stored(
    store: Store, session_id: str, table: Sequence[ModelPrice] | None = None
) -> SessionTimeline:
    """Return the window of a stored session at each of its requests, as far as its journal goes back.

    Sessions of versions without a journal show the window as it is now.

    Args:
        store: where the session is.
        session_id: the session.
        table: the prices of models; by default those in use.
    """
    prices = prices_in_use() if table is None else table
    return _StoredTimeline(store, session_id, prices).made()


class _StoredTimeline:
    """Plays the journal of a session forward, and ends with what is in its window now."""

    def __init__(self, store: Store, session_id: str, table: Sequence[ModelPrice]) -> None:
        self._table = table
        self._state = store.get(session_id, "state", "session") or {}
        self._journal: Journal = read_journal(store, session_id)
        self._numbers = [each.number for each in self._journal.requests]
        self._times = [each.at for each in self._journal.requests]
        self._heap: Heap = stored_heap(store, session_id)
        docs = dict(store.load(session_id, "segments"))
        self._handles = {name: doc.get("handle") for name, doc in docs.items()}
        self._carried = {
            key: int(doc["request"])
            for key, doc in store.load(session_id, "messages")
            if isinstance(doc.get("request"), int)
        }
        self._results = {
            int(key): doc.get("result", {}) for key, doc in store.load(session_id, "collections")
        }
        self._checkpoints = [
            datetime.fromisoformat(str(doc["timestamp"]))
            for _, doc in store.load(session_id, "checkpoints")
            if "timestamp" in doc
        ]
        self._book = SpanBook()
        self._stands_for: dict[str, str] = {}
        self._notes: dict[str, int] = {}
        """Notes that ctxgc put in for a while, with their tokens."""
        self._changes: list[TimelineChange] = []
        self._marks: dict[int, list[Mark]] = {}
        self._causes: dict[int, str] = {}

    @property
    def _now(self) -> int:
        return len(self._numbers) + 1

    def made(self) -> SessionTimeline:
        """Return the timeline."""
        born = self._births()
        changes: dict[int, list[ViewChange]] = {}
        for change in self._journal.changes:
            changes.setdefault(self._place(change.request + 1), []).append(change)
        for place in range(1, self._now + 1):
            for segment in born.get(place, ()):
                self._book.show(segment.segment_id, place, segment.tokens or 0)
            for change in changes.get(place, ()):
                self._play(place, change)
        self._settle()
        self._mark_checkpoints()
        return SessionTimeline(
            requests=self._requests(), segments=self._segments(), changes=self._changes
        )

    # -- where in the journal something is ----------------------------------------------------------

    def _place(self, number: int) -> int:
        """Return the place in the timeline of a request, or of the first after it that is known."""
        return bisect_left(self._numbers, number) + 1

    def _place_at(self, moment: datetime) -> int:
        return bisect_left(self._times, moment) + 1

    def _births(self) -> dict[int, list[ContextSegment]]:
        """Return the segments that came in with a message, by the place of their first request."""
        moved = {name for change in self._journal.changes for name in change.out}
        moved |= {name for change in self._journal.changes for _, name, _ in change.made}
        later = {name for change in self._journal.changes for name in change.back}
        later |= {name for change in self._journal.changes for name, _ in change.fresh}
        found: dict[int, list[ContextSegment]] = {}
        for segment in self._heap:
            name = segment.segment_id
            # What is out and never left within the journal had left before it began.
            was_there = segment.tier == "working" or name in moved
            carried = self._carried.get(segment.message_id or "")
            if segment.derived_from is None and was_there and (carried or name not in later):
                place = (
                    self._place_at(segment.created_at) if carried is None else self._place(carried)
                )
                found.setdefault(place, []).append(segment)
        return found

    # -- what changed -------------------------------------------------------------------------------

    def _play(self, place: int, change: ViewChange) -> None:
        result = self._results.get(change.collection or 0, {})
        self._note(place, change, result)
        whys = _whys(result)
        stands = {original: tokens for _, original, tokens in change.made}
        self._stands_for.update((name, original) for name, original, _ in change.made)
        for name in dict.fromkeys(self._stands_for.get(name, name) for name in change.out):
            if name not in stands and name not in change.back and self._book.hide(name, place):
                self._say(
                    "left", place, name, self._size(name), (change, self._why(name, change, whys))
                )
        for name, tokens in stands.items():
            self._book.show(name, place, tokens, "stub")
            if change.cause in _CAME_BACK:
                self._say("came_back", place, name, tokens, (change, _CAME_BACK[change.cause]))
            else:
                gone = max(0, self._size(name) - tokens)
                self._say("shrunk", place, name, gone, (change, self._why(name, change, whys)))
        for name in filter(self._heap.__contains__, change.back):
            self._book.show(name, place, self._size(name))
            if change.cause in _CAME_BACK:
                said = (change, _CAME_BACK[change.cause])
                self._say("came_back", place, name, self._size(name), said)
        for name, tokens in change.fresh:
            self._book.show(name, place, tokens)
            if name not in self._heap:
                self._notes[name] = tokens

    def _why(self, name: str, change: ViewChange, whys: Mapping[str, str]) -> str:
        """Return why a change moved a segment: what its collection said of the message, else its cause."""
        segment = self._heap.peek(name)
        said = None if segment is None else whys.get(segment.message_id or "")
        return said or _LEFT.get(change.cause, change.cause)

    def _say(
        self, kind: ChangeKind, place: int, name: str, tokens: int, said: tuple[ViewChange, str]
    ) -> None:
        if name in self._heap:
            change, why = said
            self._changes.append(
                TimelineChange(
                    request=place, segment=name, kind=kind, why=why, tokens=tokens,
                    handle=self._handles.get(name), collection=change.collection,
                )
            )  # fmt: skip

    def _note(self, place: int, change: ViewChange, result: Mapping[str, Any]) -> None:
        marks = self._marks.setdefault(place, [])
        if change.cause in ("collection", "recall") and change.cause not in marks:
            marks.append("recall" if change.cause == "recall" else "collection")
        if result.get("trigger_reason") == "context_limit" and "overflow" not in marks:
            marks.append("overflow")
        self._causes.setdefault(
            place, "collection" if change.cause == "collection" else change.cause
        )

    def _mark_checkpoints(self) -> None:
        for moment in self._checkpoints:
            marks = self._marks.setdefault(self._place_at(moment), [])
            if "checkpoint" not in marks:
                marks.append("checkpoint")

    # -- what is there now --------------------------------------------------------------------------

    def _settle(self) -> None:
        """Say what is in the window now, and how it is; the store knows that better than any journal."""
        shown: dict[str, tuple[int, Form]] = {}
        for segment in self._heap.working():
            original, tokens = segment.derived_from, segment.tokens or 0
            if original is not None and self._heap.peek(original) is not None:
                shown[original] = (tokens, "stub")
            else:
                shown[segment.segment_id] = (tokens, "whole")
        for name in self._book.shown():
            if name not in shown:
                self._book.hide(name, self._now)
        for name, (tokens, form) in shown.items():
            self._book.show(name, self._now, tokens, form)
        for name, status in self._statuses().items():
            if name in shown:
                self._book.restate(name, self._now, status)
        self._book.hide_all(self._now + 1)

    def _statuses(self) -> dict[str, str]:
        engine = GCEngine()
        now = max((segment.last_touched_at for segment in self._heap), default=utc_now())
        analysis = engine.analyze(engine.state(self._heap, now))
        found = {segment.segment_id: "unreachable" for segment in analysis.garbage}
        for segment in self._heap.working():
            if segment.superseded_by is not None:
                is_copy = segment.superseded_how == "identical"
                found[segment.segment_id] = "copy" if is_copy else "superseded"
            if segment.pinned or segment.message_id in self._state.get("pinned_messages", ()):
                found[segment.segment_id] = "pinned"
        return found

    def _size(self, name: str) -> int:
        segment = self._heap.peek(name)
        return 0 if segment is None else segment.tokens or 0

    def _segments(self) -> list[TimelineSegment]:
        own = [
            TimelineSegment(
                id=segment.segment_id, label=segment_label(segment), source=segment_kind(segment),
                policy=segment.policy, role=segment.role or "", tokens=segment.tokens or 0,
                tool=segment.name, file=segment.file_path,
                spans=self._book.spans(segment.segment_id),
            )
            for segment in self._heap
            if segment.derived_from is None or self._book.spans(segment.segment_id)
        ]  # fmt: skip
        notes = [
            TimelineSegment(
                id=name, label="a note of ctxgc", source="reminder", policy="ephemeral", role="user",
                tokens=tokens, spans=self._book.spans(name),
            )
            for name, tokens in self._notes.items()
        ]  # fmt: skip
        return [*self._beside(), *own, *notes]

    def _beside(self) -> Iterable[TimelineSegment]:
        """Yield what is sent besides the messages, from when it came in."""
        for doc in self._state.get("beside", ()):
            if doc.get("left"):
                continue
            kind, tokens = _BESIDE.get(doc["source"], "system"), int(doc["tokens"])
            name = f"{doc['source']}:{doc['key']}"
            at = datetime.fromtimestamp(doc["created_at"], tz=utc_now().tzinfo)
            self._book.show(name, self._place_at(at), tokens)
            self._book.hide(name, self._now + 1)
            yield TimelineSegment(
                id=name, label=str(doc["key"]).replace("_", " "), source=kind,
                policy=str(doc["policy"]), role="system", tokens=tokens,
                tool=str(doc["key"]) if kind == "tools" else None, spans=self._book.spans(name),
            )  # fmt: skip

    # -- requests -----------------------------------------------------------------------------------

    def _requests(self) -> list[TimelineRequest]:
        known = self._journal.requests
        found = [
            self._request(place, each, known[place - 2] if place > 1 else None)
            for place, each in enumerate(known, 1)
        ]
        beside = sum(int(d["tokens"]) for d in self._state.get("beside", ()) if not d.get("left"))
        now = TimelineRequest(
            n=self._now,
            tokens=self._heap.ledger.working.tokens + beside,
            limit=int(self._state.get("context_limit") or 0),
            marks=[*self._marks.get(self._now, []), "now"],
        )
        return [*found, now]

    def _request(
        self, place: int, sent: JournalRequest, before: JournalRequest | None
    ) -> TimelineRequest:
        usage = _usage(sent)
        spend = sent_spend(sent, self._table)
        state, cause = self._cache(place, sent, usage, before)
        broken: list[Mark] = ["cache_break"] if cause else []
        return TimelineRequest(
            n=place, tokens=sent.tokens, limit=sent.limit, at=sent.at,
            input=usage.uncached, cache_read=usage.cache_read, cache_write=usage.cache_write,
            output=usage.output, cost=None if spend.unpriced else spend.dollars, cache=state,
            cache_cause=cause, marks=[*self._marks.get(place, []), *broken],
            estimated=sent.input is None,
        )  # fmt: skip

    def _cache(
        self, place: int, sent: JournalRequest, usage: Usage, before: JournalRequest | None
    ) -> tuple[CacheState, str | None]:
        if before is None:
            return ("hit" if usage.cache_read else "cold"), None
        if not sent.warm:
            return "cold", "idle too long"
        left = min(before.tokens, sent.cached) if sent.input is None else before.tokens
        if usage.cache_read >= left and sent.cached >= before.tokens:
            return "hit", None
        cause = self._causes.get(place)
        if cause is None:
            return ("hit" if usage.cache_read else "miss"), None
        return ("part" if usage.cache_read else "miss"), cause


def _whys(result: Mapping[str, Any]) -> dict[str, str]:
    """Return why a collection moved each message, in words."""
    if not result:
        return {}
    described = {name: value for name, value in result.items() if name != "tokens_freed"}
    items = GCResult.from_dict(described).removal_list
    return {
        str(name): item.why
        for item in items
        for name in (item.child_key, *item.message_ids)
        if name
    }


def sent_spend(sent: JournalRequest, table: Sequence[ModelPrice]) -> Spend:
    """Return what a request of a stored session cost, estimated where the provider's counts are not known."""
    return spend_of(_usage(sent), table, sent.model)


def _usage(sent: JournalRequest) -> Usage:
    """Return what the provider counted for a request; else what the session expects that it did."""
    if sent.input is not None:
        return Usage(
            uncached=sent.input, cache_read=sent.cache_read, cache_write=sent.cache_write,
            cache_write_1h=sent.cache_write_1h, output=sent.output, written_at=sent.at, model=sent.model,
        )  # fmt: skip
    fresh = sent.tokens - sent.cached
    sheet = sheet_of(sent.model)
    writes = sheet is not None and price_sheet(sheet).write != 1.0
    return Usage(
        uncached=0 if writes else fresh, cache_read=sent.cached, cache_write=fresh if writes else 0,
        output=0, written_at=sent.at, model=sent.model,
    )  # fmt: skip
