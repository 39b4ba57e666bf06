"""Mark: what the roots reach, in work that is linear in what is linked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ctxgc.core import ContextSegment, Heap
from ctxgc.core.mark import Marks, mark_all, mark_young, reachable
from tests.core.build import call, calls, heap_of, result, seg
from tests.requirements import requirement


@requirement("S0.mark.transitive", "S1.mark.mark-phase", "S1.acceptance.reachability")
def test_marking_reaches_what_roots_reference_directly_or_not() -> None:
    heap = heap_of(seg("c"), seg("b", references=["c"]), seg("a", references=["b"]), seg("z"))
    marks = mark_all(heap, ["a"])
    assert (marks.reached(), len(marks), "z" in marks) == ({"a", "b", "c"}, 3, False)
    assert marks.chain("c") == ("a", "b", "c")
    assert marks.chain("z") == ()


@requirement("S0.mark.cycles")
def test_a_cycle_and_a_self_reference_are_visited_once() -> None:
    heap = heap_of(seg("a"), seg("b", references=["a"]), seg("c"))
    heap.link("a", "b")
    heap.link("c", "c")
    assert dict(mark_all(heap, ["a", "c"]).came_from) == {"a": None, "b": "a", "c": None}


def test_a_bond_is_reached_as_a_whole() -> None:
    heap = heap_of(call("c", "k"), result("r", "k"), seg("x", references=["r"]))
    assert mark_all(heap, ["x"]).reached() == {"x", "r", "c"}


def test_links_into_the_stash_lead_nowhere() -> None:
    heap = heap_of(seg("c"), seg("b", references=["c"]), seg("a", references=["b"]))
    heap.stash("b")
    assert mark_all(heap, ["a"]).reached() == {"a"}
    assert mark_all(heap, ["b"]).reached() == set()


def test_a_superseded_segment_is_reached_by_name_but_not_by_a_shared_key() -> None:
    heap = heap_of(
        seg("old", file_path="f", access="read"),
        seg("new", file_path="f", access="read"),
        seg("fan", references=["old"]),
    )
    assert mark_all(heap, ["new"]).reached() == {"new"}
    assert mark_all(heap, ["fan"]).reached() == {"fan", "old", "new"}


def test_what_a_pin_refers_to_is_reached() -> None:
    """Known fault 2: pins were skipped but were no roots, so what they reference was pruned."""
    heap = heap_of(seg("detail"), seg("pin", pinned=True, references=["detail"]))
    assert mark_all(heap, heap.root_index.pinned).reached() == {"pin", "detail"}


def test_a_plain_graph_may_name_what_it_does_not_hold() -> None:
    assert reachable({"a"}, {"a": {"b", "c"}, "c": ["a"], "z": ["y"]}) == {"a", "b", "c"}
    assert reachable([], {"a": ["b"]}) == set()


# -- minor -----------------------------------------------------------------------------------------


def test_a_minor_mark_takes_the_old_as_live_and_walks_the_young_only() -> None:
    heap = heap_of(
        seg("named"),
        seg("bonded", bond_id="b"),
        seg("shares", tags=["x"]),
        seg("beyond"),
        seg("free"),
        seg("old1", generation="old", references=["named"]),
        seg("old2", generation="old", bond_id="b"),
        seg("old3", generation="old", tags=["x"]),
    )
    heap.link("named", "beyond")
    assert mark_young(heap, []).reached() == {"named", "bonded", "shares", "beyond"}
    assert mark_young(heap, ["free", "old1"]).reached() >= {"free"}


def test_an_old_segment_in_the_stash_holds_nobody() -> None:
    heap = heap_of(seg("young"), seg("old", generation="old", references=["young"]))
    heap.stash("old")
    assert mark_young(heap, []).reached() == set()


# -- work ------------------------------------------------------------------------------------------

Shape = Callable[[int], Iterator[ContextSegment]]


def chain(size: int) -> Iterator[ContextSegment]:
    yield seg("s0")
    yield from (seg(f"s{n}", references=[f"s{n - 1}"]) for n in range(1, size))


def cycle(size: int) -> Iterator[ContextSegment]:
    yield seg("s0", references=[f"s{size - 1}"])
    yield from (seg(f"s{n}", references=[f"s{n - 1}"]) for n in range(1, size))


def topic(size: int) -> Iterator[ContextSegment]:
    yield from (seg(f"s{n}", topic_id="one") for n in range(size))


def file(size: int) -> Iterator[ContextSegment]:
    """Every second view is of the whole file, so all are linked to all."""
    for n in range(size):
        yield seg(f"s{n}", file_path="f", line_range=None if n % 2 else (n, n + 64 * 9))


def bond(size: int) -> Iterator[ContextSegment]:
    yield from (seg(f"s{n}", bond_id="one") for n in range(size))


def star(size: int) -> Iterator[ContextSegment]:
    yield seg("s0", references=[f"s{n}" for n in range(1, size)])
    yield from (seg(f"s{n}", references=["s0"]) for n in range(1, size))


SHAPES = [chain, cycle, topic, file, bond, star]


@requirement("S0.mark.iterative", "S0.mark.cycles")
@pytest.mark.parametrize("shape", [cycle, topic])
def test_a_hundred_thousand_linked_segments_are_marked_in_linear_work(shape: Shape) -> None:
    """Known fault 10: topic edges were quadratic. Counted in calls, per segment."""
    size = 100_000
    heap = Heap()
    heap.add_all(shape(size))
    marks: list[Marks] = []
    work = calls(lambda: marks.append(mark_all(heap, [f"s{size - 1}"])))
    assert len(marks[0]) == size
    assert work <= 12 * size


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("marker", [mark_all, mark_young])
def test_ten_times_the_segments_are_ten_times_the_work(
    shape: Shape, marker: Callable[..., Marks]
) -> None:
    def work(size: int) -> int:
        heap = Heap()
        heap.add_all(shape(size))
        return calls(lambda: marker(heap, ["s0"]))

    assert work(3_000) <= 11 * work(300)
