"""The header fields that only the heap writes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from ctxgc.core import Heap
from ctxgc.core.codec import heap_to_json
from ctxgc.errors import InputError, UnknownSegmentError
from tests.core.build import LONG_AGO, NOW, heap_of, seg
from tests.requirements import requirement


@requirement("S0.heap.lookup")
def test_a_segment_is_found_by_its_id() -> None:
    heap = heap_of(seg("a"), seg("b"))
    assert (heap.get("b").segment_id, heap.peek("c")) == ("b", None)
    assert ("a" in heap, "c" in heap, len(heap)) == (True, False, 2)
    assert heap.segments == {"a": heap.get("a"), "b": heap.get("b")}


def test_the_segments_of_a_heap_are_for_reading_only() -> None:
    heap = heap_of(seg("a"))
    with pytest.raises(TypeError):
        heap.segments["b"] = seg("b")  # type: ignore[index]


OPERATIONS: list[Callable[[Heap], object]] = [
    lambda heap: heap.get("ghost"),
    lambda heap: heap.touch("ghost"),
    lambda heap: heap.link("a", "ghost"),
    lambda heap: heap.link("ghost", "a"),
    lambda heap: heap.unlink("a", "ghost"),
    lambda heap: heap.pin("ghost"),
    lambda heap: heap.unpin("ghost"),
    lambda heap: heap.protect("ghost", 3),
    lambda heap: heap.stash("ghost"),
    lambda heap: heap.recall("ghost"),
    lambda heap: heap.remove("ghost"),
    lambda heap: heap.tenure("ghost"),
    lambda heap: heap.survive("ghost"),
    lambda heap: heap.replace("ghost", seg("b")),
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_unknown_id_is_refused_and_changes_nothing(operation: Callable[[Heap], object]) -> None:
    heap = heap_of(seg("a"))
    before = heap_to_json(heap)
    with pytest.raises(UnknownSegmentError) as caught:
        operation(heap)
    assert caught.value.details == {"field": "segment_id", "segment_id": "ghost"}
    assert heap_to_json(heap) == before


@requirement("S0.incremental.update-ages")
def test_a_touch_updates_step_time_and_count() -> None:
    heap = heap_of(seg("a"), seg("b"), seg("c"))
    heap.touch("a", NOW)
    heap.touch("a", NOW - timedelta(days=1))
    a = heap.get("a")
    assert (a.touches, a.last_touched_step, a.last_touched_at) == (2, 3, NOW)
    assert (a.created_step, a.created_at) == (1, LONG_AGO)


def test_a_touch_at_a_naive_time_is_refused() -> None:
    heap = heap_of(seg("a"))
    before = heap_to_json(heap)
    with pytest.raises(InputError) as caught:
        heap.touch("a", datetime(2026, 1, 1))  # noqa: DTZ001 - naive on purpose
    assert caught.value.details == {"field": "now"}
    assert heap_to_json(heap) == before


@requirement("S0.incremental.update-ages")
def test_an_arrival_touches_what_it_mentions_and_nothing_else() -> None:
    heap = heap_of(seg("a", "parse_header is defined here"), seg("b", "plain words"))
    heap.add(seg("c", "why does parse_header fail?", created_at=NOW))
    touched = {s.segment_id: (s.touches, s.last_touched_step, s.last_touched_at) for s in heap}
    assert touched == {"a": (1, 3, NOW), "b": (0, 2, LONG_AGO), "c": (0, 3, NOW)}


def test_a_pin_and_its_end_each_change_the_heap_once() -> None:
    heap = heap_of(seg("a"))
    versions = [heap.version]
    for change in (heap.pin, heap.pin, heap.unpin, heap.unpin):
        change("a")
        versions.append(heap.version)
    assert [b - a for a, b in pairwise(versions)] == [1, 0, 1, 0]


def test_survivals_are_counted() -> None:
    heap = heap_of(seg("a"))
    assert [heap.survive("a"), heap.survive("a")] == [1, 2]
    assert heap.get("a").gc_survival_count == 2


def test_a_tenured_segment_is_remembered_for_the_young_that_it_refers_to() -> None:
    heap = heap_of(seg("young"), seg("old", references=["young"]))
    heap.tenure("old")
    heap.tenure("old")
    assert heap.links.remembered == {"young": 1}
    heap.stash("old")
    assert heap.links.remembered == {}
    heap.recall("old")
    assert heap.links.remembered == {"young": 1}
    heap.tenure("young")
    assert heap.links.remembered == {}


def test_links_from_old_to_young_are_remembered_and_forgotten_as_they_come_and_go() -> None:
    heap = heap_of(seg("old", generation="old"), seg("young"))
    heap.link("old", "young")
    assert heap.links.remembered == {"young": 1}
    heap.unlink("old", "young")
    assert heap.links.remembered == {}
    heap.link("old", "young")
    heap.remove("old")
    assert heap.links.remembered == {}


def test_opening_a_file_changes_the_heap() -> None:
    heap = heap_of(seg("a"))
    before = heap.version
    heap.open_file("src/a.py")
    heap.open_file("src/b.py")
    heap.open_file("src/a.py")
    assert (list(heap.root_index.opened), heap.version - before) == (["src/b.py", "src/a.py"], 3)
