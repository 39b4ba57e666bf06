"""Implicit links through shared keys."""

from __future__ import annotations

import pytest

from ctxgc.core.links import WHOLE, KeyIndex, keys_of
from ctxgc.core.mark import mark_all
from tests.core.build import heap_of, seg
from tests.requirements import requirement


def test_a_segment_holds_its_topic_its_tags_and_the_cards_of_its_file() -> None:
    made = seg(
        "a", topic_id="t", tags=["x", "ref:b", "secret:npm"], file_path="f.py", line_range=(60, 130)
    )
    assert keys_of(made) == [
        ("topic", "t", WHOLE),
        ("tag", "x", WHOLE),
        ("path", "f.py", 0),
        ("path", "f.py", 1),
        ("path", "f.py", 2),
    ]


@requirement("S0.links.file-path", "S0.links.tags", "S0.links.topic")
@pytest.mark.parametrize(
    ("one", "other", "linked"),
    [
        ({"topic_id": "t"}, {"topic_id": "t"}, True),
        ({"topic_id": "t"}, {"topic_id": "u"}, False),
        ({"tags": ["bug-123"]}, {"tags": ["x", "bug-123"]}, True),
        ({"tags": ["t"]}, {"topic_id": "t"}, False),
        ({"file_path": "a.py"}, {"file_path": "a.py"}, True),
        ({"file_path": "a.py"}, {"file_path": "b.py"}, False),
        ({"file_path": "a.py"}, {"file_path": "a.py", "line_range": (900, 950)}, True),
        ({"file_path": "a.py", "line_range": (900, 950)}, {"file_path": "a.py"}, True),
        (
            {"file_path": "a.py", "line_range": (0, 50)},
            {"file_path": "a.py", "line_range": (40, 90)},
            True,
        ),
        (
            {"file_path": "a.py", "line_range": (0, 50)},
            {"file_path": "a.py", "line_range": (500, 550)},
            False,
        ),
    ],
)
def test_segments_that_share_a_key_are_linked(
    one: dict[str, object], other: dict[str, object], linked: bool
) -> None:
    heap = heap_of(seg("one", **one), seg("other", **other))
    assert ("other" in mark_all(heap, ["one"])) is linked


def test_kinds_that_are_not_strong_link_nobody() -> None:
    heap = heap_of(seg("a", topic_id="t", tags=["x"]), seg("b", topic_id="t"), seg("c", tags=["x"]))
    assert mark_all(heap, ["a"], ("tag",)).reached() == {"a", "c"}
    assert mark_all(heap, ["a"], ()).reached() == {"a"}


def test_the_index_knows_the_young_from_the_old_and_forgets_empty_keys() -> None:
    index, young = KeyIndex(), seg("y", tags=["x"], file_path="f")
    old = seg("o", tags=["x"], generation="old")
    for segment in (young, old):
        index.add(segment)
    members = index.members(("tag", "x", WHOLE))
    assert (list(members.all()), list(members.young), list(members.old)) == (
        ["o", "y"],
        ["y"],
        ["o"],
    )
    for segment in (young, old, old):
        index.discard(segment)
    assert (list(index.keys()), list(index.holders_of_path("f"))) == ([], [])


def test_a_tenured_segment_changes_sides() -> None:
    heap = heap_of(seg("a", tags=["x"]))
    heap.tenure("a")
    members = heap.keys.members(("tag", "x", WHOLE))
    assert (list(members.young), list(members.old)) == ([], ["a"])


def test_the_holders_of_a_file_are_named_once() -> None:
    heap = heap_of(
        seg("a", file_path="f", line_range=(0, 300)),
        seg("b", file_path="f"),
        seg("c", file_path="g"),
    )
    assert sorted(heap.keys.holders_of_path("f")) == ["a", "b"]
