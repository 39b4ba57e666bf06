"""Why a segment of a stored session is where it is: the roots that reach it, its links, and what moved it."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxgc.collector import Analysis, GCEngine
from ctxgc.core import (
    SEGMENT_FIELDS,
    ContextSegment,
    Heap,
    segment_from_dict,
    utc_now,
)
from ctxgc.stores import Store

_MOST_LINKS = 12


class SegmentLink(msgspec.Struct, frozen=True):
    """A segment that this one refers to, or that refers to it."""

    way: str
    segment_id: str
    text: str


class SegmentReason(msgspec.Struct, frozen=True, kw_only=True):
    """Where a segment is, the chain of reasons, the collections that moved it, and its links."""

    standing: str
    because: list[str]
    moves: list[str]
    links: list[SegmentLink]
    score: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def explain_segment(store: Store, session_id: str, segment_id: str) -> SegmentReason:
    """Return why a segment of a session is where it is, as the engine sees it."""
    heap = _heap(store, session_id)
    segment = heap.get(segment_id)
    now = max((s.last_touched_at for s in heap), default=utc_now())
    engine = GCEngine()
    analysis = engine.analyze(engine.state(heap, now))
    is_free = segment.tier == "working" and analysis.may_leave(segment_id)
    return SegmentReason(
        standing=_standing(segment, analysis),
        because=_because(segment, analysis),
        moves=_moves(store, session_id, segment),
        links=_links(heap, segment),
        score=_score(analysis, segment_id) if is_free else "",
    )


def _heap(store: Store, session_id: str) -> Heap:
    docs = [doc for _, doc in store.load(session_id, "segments")]
    known = {str(doc.get("segment_id")) for doc in docs}
    heap = Heap()
    heap.rebuild([_segment(doc, known) for doc in docs])
    return heap


def _segment(doc: dict[str, Any], known: set[str]) -> ContextSegment:
    """Return the segment of a document, without links to what was deleted since."""
    fields = {name: value for name, value in doc.items() if name in SEGMENT_FIELDS}
    fields["references"] = [ref for ref in fields.get("references") or () if ref in known]
    if fields.get("derived_from") not in known:
        fields["derived_from"] = None
    return segment_from_dict(fields)


def _standing(segment: ContextSegment, analysis: Analysis) -> str:
    if segment.tier == "stashed":
        return "stashed: out of the view, intact"
    if segment.segment_id in analysis.roots:
        return "working: a root, no collection removes it"
    if analysis.is_reachable(segment.segment_id):
        return "working: reachable, leaves only when garbage is not enough"
    return "working: unreachable, leaves first"


def _because(segment: ContextSegment, analysis: Analysis) -> list[str]:
    found = []
    if segment.superseded_by is not None:
        found.append(str(analysis.evidence(segment)))
    if segment.derived_from is not None:
        found.append(f"replaces {segment.derived_from}")
    found += [f"{hop.segment_id}: {hop.via}" for hop in analysis.chain(segment.segment_id)]
    return found


def _moves(store: Store, session_id: str, segment: ContextSegment) -> list[str]:
    """Return the collections that moved the message of a segment, oldest first."""
    found = []
    for key, doc in sorted(store.load(session_id, "collections")):
        result = doc.get("result", {})
        for item in result.get("removal_list", ()):
            names = (item.get("child_key"), *item.get("message_ids", ()))
            if segment.message_id in names and segment.message_id is not None:
                by = f"{result.get('plugin_name')}, {result.get('trigger_reason')}"
                found.append(f"collection {int(key)} ({by}): {item.get('reason')}")
    return found


def _links(heap: Heap, segment: ContextSegment) -> list[SegmentLink]:
    out = heap.references.get(segment.segment_id, set())
    back = heap.backrefs.get(segment.segment_id, set())
    group = [other for other in heap.bonds.group(segment) if other != segment.segment_id]
    ways = [("bond", group), ("refers to", sorted(out)), ("referred by", sorted(back))]
    found = [SegmentLink(way, other, heap.get(other).text) for way, ids in ways for other in ids]
    return found[:_MOST_LINKS]


def _score(analysis: Analysis, segment_id: str) -> str:
    return f"{analysis.score(segment_id):.2f} (higher stays longer)"
