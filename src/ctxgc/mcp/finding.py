"""Finding segments: by id, handle, name or words, wherever a tool takes a reference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ctxgc.core.segment import ContextSegment
from ctxgc.errors import InputError, UnknownHandleError, UnknownSegmentError
from ctxgc.mcp.context import Context
from ctxgc.stores import SearchFilters, Store, StoreHit
from ctxgc.stores.words import words

HANDLE = re.compile(r"h-[a-z2-7]{16}")
MOST_BY_QUERY = 50
EXCERPT = 200


class Found(msgspec.Struct, frozen=True, kw_only=True):
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

    def all(self, references: Sequence[str], query: str | None = None) -> Found:
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
        return Found(segments=list(segments.values()), by_words=by_words)

    def matching(self, query: str, limit: int = MOST_BY_QUERY) -> list[ContextSegment]:
        """Return the segments that hold every word of a query, best first.

        Raises:
            UnknownSegmentError: there is none.
        """
        wanted = set(words(query))
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
        if not words(query):
            raise InputError("the query has no words", hint="name what you look for", field="query")
        found = self._store.search(query, session_id=self._session_id, filters=filters, limit=limit)
        return [hit for hit in found if hit.key in self._context.heap]

    def _best(self, reference: str) -> ContextSegment:
        if not words(reference) or HANDLE.fullmatch(reference):
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
    wanted = set(words(query))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    best = max(lines[:2_000], key=lambda line: len(wanted & set(words(line))), default="")
    return best if len(best) <= EXCERPT else f"{best[:EXCERPT]}..."


def _words_of(hit: StoreHit) -> list[str]:
    fields = (hit.doc.get(name) for name in ("text", "name", "file_path", "topic_id"))
    texts = [text for text in (*fields, *hit.doc.get("tags", ())) if isinstance(text, str)]
    return [word for text in texts for word in words(text)]


def _unknown(reference: str) -> UnknownSegmentError:
    return UnknownSegmentError(
        f"nothing here answers to '{reference[:80]}'",
        hint="context_search(query) lists what there is, with ids",
        field="segment_ids",
        segment_id=reference[:80],
    )
