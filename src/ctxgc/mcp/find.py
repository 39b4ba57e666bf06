"""Returning: what was moved out comes back, whole or in part."""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ctxgc.core import ContextSegment, PruningPlan
from ctxgc.errors import InputError, StalePlanError, UnknownHandleError, UnknownSegmentError
from ctxgc.guard import CheckpointStore
from ctxgc.mcp.context import AllowedRoots, Context
from ctxgc.session import excerpt
from ctxgc.stores import SearchFilters, Store, StoreHit, drain_inbox, search_words
from ctxgc.tokens import TokenCounter

# -- Finding segments: by id, handle, name or words, wherever a tool takes a reference


HANDLE = re.compile(r"h-[a-z2-7]{16}")
MOST_BY_QUERY = 50
EXCERPT = 200


class FoundSegments(msgspec.Struct, frozen=True, kw_only=True):
    """The segments that were meant, and for those found by words, which words led to which id."""

    segments: list[ContextSegment]
    by_words: dict[str, str]


class Finder:
    """Looks for segments of one context in memory and in its store."""

    def __init__(self, context: Context, store: Store, session_id: str) -> None:
        self._context = context
        self._store = store
        self._session_id = session_id

    def named(self, reference: str) -> ContextSegment | None:
        """Return the segment with this id, handle or name; the newest of several with one name."""
        try:
            return self._context.stash.find(reference)
        except UnknownHandleError:
            return None

    def one(self, reference: str) -> ContextSegment:
        """Return the segment that a reference means: an id, handle or name, else the best match.

        Raises:
            UnknownSegmentError: nothing is meant by it.
        """
        return self.all([reference]).segments[0]

    def all(self, references: Sequence[str], query: str | None = None) -> FoundSegments:
        """Return the segments that references and a query mean, each once, in this order.

        Raises:
            UnknownSegmentError: one of them means nothing.
        """
        segments: dict[str, ContextSegment] = {}
        by_words: dict[str, str] = {}
        for reference in references:
            segment = self.named(reference)
            if segment is None:
                segment = self._best(reference)
                by_words[reference] = segment.segment_id
            segments[segment.segment_id] = segment
        if query is not None:
            segments.update((s.segment_id, s) for s in self.matching(query))
        return FoundSegments(segments=list(segments.values()), by_words=by_words)

    def matching(self, query: str, limit: int = MOST_BY_QUERY) -> list[ContextSegment]:
        """Return the segments that hold every word of a query, best first.

        Raises:
            UnknownSegmentError: there is none.
        """
        wanted = set(search_words(query))
        hits = self.hits(query, SearchFilters(), limit)
        found = [hit for hit in hits if wanted <= set(_words_of(hit))]
        if not found:
            raise _unknown(query)
        return [self._context.heap.get(hit.key) for hit in found]

    def hits(self, query: str, filters: SearchFilters, limit: int) -> list[StoreHit]:
        """Return what a search finds in this context, best first.

        Raises:
            InputError: the query has no words.
        """
        if not search_words(query):
            raise InputError("the query has no words", hint="name what you look for", field="query")
        found = self._store.search(query, session_id=self._session_id, filters=filters, limit=limit)
        return [hit for hit in found if hit.key in self._context.heap]

    def _best(self, reference: str) -> ContextSegment:
        if not search_words(reference) or HANDLE.fullmatch(reference):
            raise _unknown(reference)
        return self.matching(reference, 5)[0]


def describe(context: Context, segment: ContextSegment) -> dict[str, Any]:
    """Return what tells a segment from others, without its text."""
    known = {
        "segment_id": segment.segment_id,
        "handle": context.handle(segment.segment_id),
        "name": segment.name,
        "type": segment.type,
        "tier": segment.tier,
        "tokens": segment.tokens or 0,
        "file_path": segment.file_path,
        "task_id": segment.task_id,
        "pinned": segment.pinned or None,
    }
    return {key: value for key, value in known.items() if value is not None}


def excerpt_for(text: str, query: str) -> str:
    """Return the first line of a text that holds most words of a query, cut to a short length."""
    wanted = set(search_words(query))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    best = max(lines[:2_000], key=lambda line: len(wanted & set(search_words(line))), default="")
    return best if len(best) <= EXCERPT else f"{best[:EXCERPT]}..."


def _words_of(hit: StoreHit) -> list[str]:
    fields = (hit.doc.get(name) for name in ("text", "name", "file_path", "topic_id"))
    texts = [text for text in (*fields, *hit.doc.get("tags", ())) if isinstance(text, str)]
    return [word for text in texts for word in search_words(text)]


def _unknown(reference: str) -> UnknownSegmentError:
    return UnknownSegmentError(
        f"nothing here answers to '{reference[:80]}'",
        hint="context_search(query) lists what there is, with ids",
        field="segment_ids",
        segment_id=reference[:80],
    )


# -- Plans: what was analysed, kept for a while under an id that cannot be guessed


MOST_PLANS = 20
LIFETIME = timedelta(hours=1)


class KeptPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with its id and the time that it was made."""

    plan_id: str
    made_at: datetime
    plan: PruningPlan


class Plans:
    """The last plans of one context. Those of another caller are not here, whatever their id."""

    def __init__(self) -> None:
        self._plans: OrderedDict[str, KeptPlan] = OrderedDict()

    def keep(self, plan: PruningPlan, now: datetime) -> KeptPlan:
        """Keep a plan and return it with its id; the oldest make room."""
        kept = KeptPlan(plan_id=f"plan-{secrets.token_hex(16)}", made_at=now, plan=plan)
        self._plans[kept.plan_id] = kept
        while len(self._plans) > MOST_PLANS:
            self._plans.popitem(last=False)
        return kept

    def get(self, plan_id: str, heap_version: int, now: datetime) -> KeptPlan:
        """Return a plan that can still be applied.

        Raises:
            StalePlanError: it is unknown, too old, or the context changed since it was made.
        """
        kept = self._plans.get(plan_id)
        if kept is None or now - kept.made_at > LIFETIME:
            raise _stale("the plan is not known here, or too old")
        if kept.plan.heap_version != heap_version:
            raise _stale("the context changed since the plan was made")
        return kept

    def usable(self, heap_version: int, now: datetime) -> list[KeptPlan]:
        """Return the plans that could be applied now, newest first."""
        return [
            kept
            for kept in reversed(self._plans.values())
            if kept.plan.heap_version == heap_version and now - kept.made_at <= LIFETIME
        ]


def _stale(why: str) -> StalePlanError:
    return StalePlanError(
        why, hint="call context_gc_analyze again and use the new plan_id", field="plan_id"
    )


# -- The bench: what it takes to answer for one context, beside the context itself


Json = dict[str, Any]
MOST_LISTED = 50
"""How many ids of one kind an answer names."""


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """Store, plans, allowed roots and counter; `alone` when no other caller shares the store."""

    store: Store
    session_id: str
    plans: Plans
    roots: AllowedRoots
    counter: TokenCounter
    alone: bool

    def finder(self, context: Context) -> Finder:
        """Return what finds segments by any reference."""
        return Finder(context, self.store, self.session_id)

    def shelf(self) -> CheckpointStore:
        """Return where the checkpoints are kept."""
        return CheckpointStore(self.store, self.session_id)


# -- Returning: what was moved out comes back, whole or in part


MOST_SHOWN = 50_000
HELD_STEPS = 50
"""For how many steps a recalled segment is safe from every collection."""


def part_of(
    text: str, lines: tuple[int, int] | None, pattern: str | None
) -> tuple[str, dict[str, Any]]:
    """Return the part of a text that is asked for, and where to go on if it is too long to show."""
    wanted = excerpt(text, lines=lines, pattern=pattern)
    if len(wanted) <= MOST_SHOWN:
        return wanted, {}
    cut = wanted.rfind("\n", 0, MOST_SHOWN)
    shown = wanted[: cut if cut > 0 else MOST_SHOWN]
    first = (lines[0] if lines else 1) + shown.count("\n")
    more = {"characters": len(wanted) - len(shown)}
    return shown, more if pattern else {**more, "from_line": first + (1 if cut > 0 else 0)}


def bring_back(context: Context, segment: ContextSegment) -> bool:
    """Move a stashed segment back, safe for a while; tell whether it had been moved out."""
    if segment.tier == "working":
        return False
    context.heap.recall(segment.segment_id)
    context.heap.protect(segment.segment_id, context.heap.step + HELD_STEPS)
    return True


def originals(context: Context, segment: ContextSegment) -> list[ContextSegment]:
    """Return what stands stashed behind a summary or stub, or the segment itself if it is that.

    Raises:
        InputError: nothing was compressed into this segment.
    """
    if segment.tier == "stashed":
        return [segment]
    behind = [segment.derived_from] if segment.derived_from else []
    stashed = [
        context.heap.get(i)
        for i in (*behind, *segment.references)
        if i in context.heap and context.heap.get(i).tier == "stashed"
    ]
    if not behind or not stashed:
        raise InputError(
            f"'{segment.segment_id}' was not compressed",
            hint="context_recall(handle) shows its text",
            field="segment_id",
        )
    return stashed


def origin(segment: ContextSegment) -> dict[str, Any]:
    """Return where a text comes from, so that nobody takes it for an instruction."""
    known = {
        "type": segment.type,
        "role": segment.role,
        "trust": segment.trust,
        "file_path": segment.file_path,
        "lines": list(segment.line_range) if segment.line_range else None,
        "command": segment.command,
        "created_at": segment.created_at.isoformat(),
    }
    return {key: value for key, value in known.items() if value is not None}


def from_other_doors(store: Store, handle: str) -> dict[str, Any] | None:
    """Return the document of a segment that another door of this store stashed under a handle.

    Only a whole handle finds anything, and contexts of other callers are never looked at.
    """
    if not HANDLE.fullmatch(handle):
        return None
    drain_inbox(store)
    for info in store.sessions():
        if store.get(info.session_id, "state", "context") is not None:
            continue
        for _, doc in store.load(info.session_id, "segments"):
            if doc.get("handle") == handle:
                return {**doc, "session_id": info.session_id}
    return None
