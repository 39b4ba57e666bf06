"""Why a segment of a stored session is where it is: the roots that reach it, its links, and what moved it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
from ctxgc.insight.timeline import segment_label
from ctxgc.stores import Store

_MOST_LINKS = 12
_LONGEST_TEXT = 200_000


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
    heap = stored_heap(store, session_id)
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


def stored_heap(store: Store, session_id: str) -> Heap:
    """Return the segments of a stored session, with their links."""
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


# -- One segment, for a page about it


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A segment by its id and in a few words."""

    segment: str
    label: str


class ChainHop(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the way from a root to a segment: `link` says how it was reached."""

    segment: str
    label: str
    link: str


class StatedReason(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is said about where a segment is: by which rule, in words."""

    rule: str
    text: str


class SegmentDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A segment with its text, why it is where it is, and what it has to do with.

    `tombstone` is what stands in its place in the view, and `original` the text that came in; both are None
    for a segment that is shown as it came in.
    """

    text: str
    reasons: list[StatedReason]
    chain: list[ChainHop]
    superseded_by: list[Named]
    copies: list[Named]
    tombstone: str | None = None
    original: str | None = None
    handle: str | None = None


def stored_detail(store: Store, session_id: str, segment_id: str) -> SegmentDetail:
    """Return what is known of a segment of a stored session.

    Raises:
        UnknownSegmentError: there is none with this id.
    """
    heap = stored_heap(store, session_id)
    found = describe_segment(heap, segment_id)
    doc = store.get(session_id, "segments", segment_id) or {}
    moves = _moves(store, session_id, heap.get(segment_id))
    return msgspec.structs.replace(
        found,
        handle=doc.get("handle"),
        reasons=[*found.reasons, *(StatedReason(rule="moved", text=move) for move in moves)],
    )


def describe_segment(
    heap: Heap, segment_id: str, names: Mapping[str, str] | None = None
) -> SegmentDetail:
    """Return what the engine says of a segment now; `names` has other ids for the segments of the heap.

    Raises:
        UnknownSegmentError: there is none with this id.
    """
    segment = heap.get(segment_id)
    now = max((s.last_touched_at for s in heap), default=utc_now())
    engine = GCEngine()
    analysis = engine.analyze(engine.state(heap, now))
    stands_in = next((s for s in heap.working() if s.derived_from == segment_id), None)
    # What is shown of it is reached, where it has left itself.
    reached = segment if stands_in is None else stands_in
    known = names or {}
    return SegmentDetail(
        text=(stands_in or segment).text[:_LONGEST_TEXT],
        tombstone=None if stands_in is None else stands_in.text[:_LONGEST_TEXT],
        original=None if stands_in is None else segment.text[:_LONGEST_TEXT],
        reasons=list(_reasons(segment, reached, analysis)),
        chain=[
            ChainHop(
                segment=known.get(hop.segment_id, hop.segment_id),
                label=segment_label(heap.get(hop.segment_id)),
                link=hop.via,
            )
            for hop in analysis.chain(reached.segment_id)
        ],
        superseded_by=_named(heap, [segment.superseded_by], known),
        copies=_named(heap, _copies(heap, segment), known),
    )  # fmt: skip


def _reasons(
    segment: ContextSegment, reached: ContextSegment, analysis: Analysis
) -> Iterator[StatedReason]:
    yield StatedReason(rule="standing", text=_standing(reached, analysis))
    for why in analysis.roots.why(reached.segment_id):
        yield StatedReason(rule="root", text=why)
    if segment.superseded_by is not None:
        yield StatedReason(rule="evidence", text=str(analysis.evidence(segment)))
    if reached.tier == "working" and analysis.may_leave(reached.segment_id):
        yield StatedReason(rule="keep_score", text=_score(analysis, reached.segment_id))


def _copies(heap: Heap, segment: ContextSegment) -> list[str | None]:
    """Return the segments that have the same text."""
    same = [
        other.segment_id
        for other in heap
        if other.superseded_by == segment.segment_id and other.superseded_how == "identical"
    ]
    return [*same, *([segment.superseded_by] if segment.superseded_how == "identical" else [])]


def _named(heap: Heap, ids: Iterable[str | None], names: Mapping[str, str]) -> list[Named]:
    known = [(name, heap.peek(name)) for name in ids if name is not None]
    found = [(name, each) for name, each in known if each is not None][:_MOST_LINKS]
    return [Named(segment=names.get(name, name), label=segment_label(each)) for name, each in found]
