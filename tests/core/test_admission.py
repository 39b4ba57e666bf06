"""What may come into a heap; what may not changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.core import ContextSegment
from ctxgc.core.codec import heap_to_json
from ctxgc.core.heap import admit
from ctxgc.errors import DuplicateSegmentError, InputError, UnknownSegmentError
from tests.core.build import heap_of, seg


def test_only_what_is_new_is_admitted_and_each_id_once() -> None:
    old, new = seg("a"), seg("b", references=["a"])
    assert admit([old, new, new], {"a": old}) == [new]


def test_members_of_a_batch_may_refer_to_each_other_in_any_order() -> None:
    batch = [seg("a", references=["b"]), seg("b", reply_to="a")]
    assert admit(batch, {}) == batch


REFUSED: list[tuple[list[ContextSegment], type[InputError], dict[str, Any]]] = [
    (
        [seg("new"), seg("b", references=["ghost"])],
        UnknownSegmentError,
        {"field": "references", "segment_id": "ghost"},
    ),
    (
        [seg("b", tags=["ref:ghost"])],
        UnknownSegmentError,
        {"field": "references", "segment_id": "ghost"},
    ),
    (
        [seg("b", reply_to="ghost")],
        UnknownSegmentError,
        {"field": "reply_to", "segment_id": "ghost"},
    ),
    (
        [seg("b", derived_from="ghost")],
        UnknownSegmentError,
        {"field": "derived_from", "segment_id": "ghost"},
    ),
    (
        [seg("new"), seg("a", "another text")],
        DuplicateSegmentError,
        {"field": "segment_id", "segment_id": "a"},
    ),
    (
        [seg("new", "one"), seg("new", "two")],
        DuplicateSegmentError,
        {"field": "segment_id", "segment_id": "new"},
    ),
]


@pytest.mark.parametrize(("batch", "error", "details"), REFUSED)
def test_a_batch_with_a_bad_member_is_refused_whole(
    batch: list[ContextSegment], error: type[InputError], details: dict[str, Any]
) -> None:
    heap = heap_of(seg("a"), seg("x", references=["a"]))
    before = heap_to_json(heap)
    with pytest.raises(error) as caught:
        heap.add_all(batch)
    assert caught.value.details == details
    assert caught.value.hint
    assert heap_to_json(heap) == before


def test_what_came_in_once_comes_in_again_though_its_target_is_gone() -> None:
    again = seg("b", references=["a"])
    heap = heap_of(seg("a"), again)
    heap.remove("a")
    before = heap_to_json(heap)
    assert heap.add_all([again]) == ["b"]
    assert heap_to_json(heap) == before


def test_a_counter_that_fails_changes_nothing() -> None:
    heap = heap_of(seg("a"))
    before = heap_to_json(heap)

    def fail(_text: str) -> int:
        raise RuntimeError("no counter")

    heap.count = fail
    with pytest.raises(RuntimeError):
        heap.add_all([seg("b", tokens=3), seg("c")])
    assert heap_to_json(heap) == before
