"""Admission: what may come into a heap, decided before anything changes."""

from __future__ import annotations

from collections.abc import Mapping

from ctxgc.core.segment import ContextSegment, explicit_references
from ctxgc.errors import DuplicateSegmentError, UnknownSegmentError

_FIELD_OF = {"reference": "references", "reply": "reply_to", "derived-from": "derived_from"}


def rough_tokens(text: str) -> int:
    """Return a quarter of the characters, rounded up: what a heap uses when it is given no counter."""
    return (len(text) + 3) // 4


def admit(batch: list[ContextSegment], known: Mapping[str, ContextSegment]) -> list[ContextSegment]:
    """Return the segments of a batch that are new, each id once.

    Raises:
        DuplicateSegmentError: an id is taken by another text, in the heap or in the batch.
        UnknownSegmentError: a new segment refers to an id that neither the heap nor the batch has.
    """
    new: dict[str, ContextSegment] = {}
    for segment in batch:
        twin = known.get(segment.segment_id) or new.get(segment.segment_id)
        if twin is None:
            new[segment.segment_id] = segment
        elif twin.text != segment.text:
            raise taken(segment.segment_id)
    for segment in new.values():
        for target, kind in explicit_references(segment).items():
            if target not in new and target not in known:
                raise unknown(target, named_by=segment.segment_id, field=_FIELD_OF[kind])
    return list(new.values())


def unknown(
    segment_id: str, *, named_by: str = "", field: str = "segment_id"
) -> UnknownSegmentError:
    """Return the error for an id that no segment has."""
    where = f" ('{field}' of segment '{named_by}')" if named_by else ""
    return UnknownSegmentError(
        f"no segment has the id '{segment_id}'{where}",
        hint="add it first, or in the same batch",
        field=field,
        segment_id=segment_id,
    )


def taken(segment_id: str) -> DuplicateSegmentError:
    """Return the error for an id that belongs to another text."""
    return DuplicateSegmentError(
        f"the id '{segment_id}' belongs to a segment with another text",
        hint="a segment's text never changes: give the new text an id of its own",
        field="segment_id",
        segment_id=segment_id,
    )
