"""What every answer may use: the request context, the finder of segments, and the plans that were kept.

A tool takes a reference to a segment as an id, a handle, a name or words. A plan is kept for a while under
an id that cannot be guessed.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ctxgc.errors import InputError, StalePlanError, UnknownHandleError, UnknownSegmentError
from ctxgc.mcp.context import AllowedRoots, Context
from ctxgc.session import (
    HANDLE,
    CheckpointStore,
    ContextSegment,
    PruningPlan,
    SearchFilters,
    Store,
    StoreHit,
    search_words,
)

Json = dict[str, Any]
MOST_LISTED = 50
"""How many ids of one kind an answer names."""

MOST_BY_QUERY = 50
EXCERPT = 200

MOST_PLANS = 20
LIFETIME = timedelta(hours=1)


class RequestContext(msgspec.Struct, frozen=True, kw_only=True):
    """Store, plans and allowed roots; `alone`: no other caller shares the store.

    `revision` returns that of the store which the context in memory is equal to.
    """

    store: Store
    session_id: str
    plans: KeptPlans
    roots: AllowedRoots
    alone: bool
    revision: Callable[[], int]

    def finder(self, context: Context) -> Finder:
        """Return a finder for the segments of a context."""
        return Finder(context, self.store, self.session_id)

    def shelf(self) -> CheckpointStore:
        """Return the store of the checkpoints."""
        return CheckpointStore(self.store, self.session_id)


# -- Finding segments


class FoundSegments(msgspec.Struct, frozen=True, kw_only=True):
    """The segments that were found; `by_words` maps the words of a reference to the id they led to."""

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
        """Return the segment of a reference: an id, handle or name, else the best match.

        Raises:
            UnknownSegmentError: there is none.
        """
        return self.all([reference]).segments[0]

    def all(self, references: Sequence[str], query: str | None = None) -> FoundSegments:
        """Return the segments of references and a query, each once, in this order.

        Raises:
            UnknownSegmentError: there is none for one of them.
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
        """Return the segments with every word of a query, best first.

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
    """Return what identifies a segment, without its text."""
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
    """Return the line of a text with most words of a query, shortened."""
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


# -- Plans


class KeptPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with its id, the time it was made, and the revision of the context it is about."""

    plan_id: str
    made_at: datetime
    plan: PruningPlan
    revision: int


class KeptPlans:
    """The last plans of one context; those of other callers are never among them."""

    def __init__(self) -> None:
        self._plans: OrderedDict[str, KeptPlan] = OrderedDict()

    def keep(self, plan: PruningPlan, now: datetime, revision: int) -> KeptPlan:
        """Keep a plan and return it with its id; the oldest are dropped."""
        plan_id = f"plan-{secrets.token_hex(16)}"
        kept = KeptPlan(plan_id=plan_id, made_at=now, plan=plan, revision=revision)
        self._plans[kept.plan_id] = kept
        while len(self._plans) > MOST_PLANS:
            self._plans.popitem(last=False)
        return kept

    def get(self, plan_id: str, revision: int, now: datetime) -> KeptPlan:
        """Return a plan that can still be applied.

        Raises:
            StalePlanError: it is unknown, too old, or the context changed since it was made.
        """
        kept = self._plans.get(plan_id)
        if kept is None or now - kept.made_at > LIFETIME:
            raise _stale("the plan is not known here, or too old")
        if kept.revision != revision:
            raise _stale("the context changed since the plan was made")
        return kept

    def usable(self, revision: int, now: datetime) -> list[KeptPlan]:
        """Return the plans that could be applied now, newest first."""
        return [
            kept
            for kept in reversed(self._plans.values())
            if kept.revision == revision and now - kept.made_at <= LIFETIME
        ]


def _stale(why: str) -> StalePlanError:
    return StalePlanError(
        why, hint="call context_gc_analyze again and use the new plan_id", field="plan_id"
    )
