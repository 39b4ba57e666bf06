"""Explicit links, both ways, and the refcounts that follow from them."""

from __future__ import annotations

from ctxgc.core import Heap
from ctxgc.core.heap import Links
from ctxgc.core.mark import mark_all
from tests.core.build import heap_of, seg
from tests.requirements import requirement


def refcounts(heap: Heap) -> dict[str, int]:
    return {segment.segment_id: segment.refcount for segment in heap}


def test_a_link_is_single_and_known_from_both_ends() -> None:
    links = Links()
    assert [links.add("a", "b"), links.add("a", "b"), links.add("c", "b")] == [True, False, True]
    assert (links.references, links.backrefs) == ({"a": {"b"}, "c": {"b"}}, {"b": {"a", "c"}})
    assert (set(links.targets("a")), set(links.sources("b")), links.refcount("b")) == (
        {"b"},
        {"a", "c"},
        2,
    )


def test_a_cut_link_leaves_nothing_behind() -> None:
    links = Links()
    links.add("a", "b")
    assert [links.discard("a", "b"), links.discard("a", "b")] == [True, False]
    assert (links.references, links.backrefs) == ({}, {})


def test_remembered_links_are_counted_up_and_down() -> None:
    links = Links()
    for count in (1, 1, -1):
        links.remember("young", count)
    assert links.remembered == {"young": 1}
    links.remember("young", -1)
    assert links.remembered == {}


@requirement(
    "S0.heap.references",
    "S0.heap.backrefs",
    "S0.links.segment-id",
    "S0.links.derived-from",
    "S0.links.reply",
    "S1.mark.references-field",
    "S1.mark.references-in-tags",
)
def test_every_field_that_names_a_segment_makes_a_link() -> None:
    heap = heap_of(
        seg("r"), seg("t"), seg("q"), seg("d"),
        seg("x", references=["r"], tags=["ref:t"], reply_to="q", derived_from="d"),
    )  # fmt: skip
    assert heap.references == {"x": {"r", "t", "q", "d"}}
    assert heap.backrefs == {target: {"x"} for target in ("r", "t", "q", "d")}
    assert mark_all(heap, ["x"]).reached() == {"x", "r", "t", "q", "d"}


@requirement("S1.tests.reference-tracking")
def test_refcounts_are_always_what_the_links_say() -> None:
    heap = heap_of(seg("a"), seg("b", references=["a"]), seg("c", tags=["ref:a"], reply_to="b"))
    assert refcounts(heap) == {"a": 2, "b": 1, "c": 0}
    heap.link("a", "c")
    heap.unlink("b", "a")
    assert refcounts(heap) == {"a": 1, "b": 1, "c": 1}
    heap.remove("c")
    assert refcounts(heap) == {"a": 0, "b": 0}
    assert (heap.references, heap.backrefs) == ({}, {})


def test_links_made_later_stand_in_the_references_of_their_source() -> None:
    heap = heap_of(seg("a"), seg("b"), seg("c", references=["b"]))
    heap.link("c", "a")
    heap.link("c", "a")
    assert heap.get("c").references == ("b", "a")


def test_a_tag_that_looks_like_an_id_hides_no_link() -> None:
    heap = heap_of(seg("a"), seg("c", tags=["a"]))
    heap.link("c", "a")
    assert (heap.get("c").references, heap.get("c").tags) == (("a",), ("a",))


def test_a_cut_link_is_cut_in_whichever_field_named_it() -> None:
    heap = heap_of(
        seg("r"), seg("t"), seg("q"), seg("d"),
        seg("x", references=["r"], tags=["ref:t", "kept"], reply_to="q", derived_from="d"),
    )  # fmt: skip
    for target in ("r", "t", "q", "d"):
        heap.unlink("x", target)
    x = heap.get("x")
    assert (x.references, x.tags, x.reply_to, x.derived_from) == ((), ("kept",), None, None)
    assert heap.references == {}
