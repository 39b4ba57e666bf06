"""What an arrival makes stale."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.core import ContextSegment, Heap
from ctxgc.core.codec import heap_from_json, heap_to_json
from ctxgc.core.links import VIEWS_PER_FILE, Supersession
from tests.core.build import call, heap_of, result, seg

OUTPUT = "the same forty characters and some more of them"


def stale(*segments: ContextSegment) -> dict[str, tuple[str | None, str | None]]:
    """Return who was superseded by whom and how when these arrive one after the other."""
    return _stale(heap_of(*segments))


def _stale(heap: Heap) -> dict[str, tuple[str | None, str | None]]:
    return {
        s.segment_id: (s.superseded_by, s.superseded_how)
        for s in heap
        if s.superseded_by is not None
    }


def view(segment_id: str, lines: tuple[int, int] | None = None, **fields: Any) -> ContextSegment:
    return seg(segment_id, **{"file_path": "f.py", "access": "read", "line_range": lines, **fields})


@pytest.mark.parametrize(
    ("older", "newer", "how"),
    [
        (None, None, "re-read"),
        ((1, 50), None, "re-read"),
        ((10, 20), (1, 50), "re-read"),
        ((1, 50), (1, 50), "re-read"),
        ((1, 50), (10, 20), None),
        ((1, 50), (40, 90), None),
        (None, (1, 50), None),
    ],
)
def test_a_read_replaces_the_views_inside_its_range(
    older: tuple[int, int] | None, newer: tuple[int, int] | None, how: str | None
) -> None:
    expected = {"a": ("b", how)} if how else {}
    assert stale(view("a", older), view("b", newer)) == expected


@pytest.mark.parametrize(
    ("older", "edited", "how"),
    [
        (None, (5, 6), "edited"),
        ((1, 50), (50, 60), "edited"),
        ((1, 50), None, "edited"),
        ((1, 50), (51, 60), None),
    ],
)
def test_an_edit_makes_every_view_stale_that_it_touches(
    older: tuple[int, int] | None, edited: tuple[int, int] | None, how: str | None
) -> None:
    expected = {"a": ("b", how)} if how else {}
    assert stale(view("a", older), view("b", edited, access="edit")) == expected


def test_an_edit_is_no_view_and_grows_not_stale() -> None:
    assert stale(view("a", access="edit"), view("b", access="edit"), view("c")) == {}


def test_another_file_is_another_matter() -> None:
    assert stale(view("a"), view("b", file_path="g.py")) == {}


def test_a_failed_access_makes_no_view_stale() -> None:
    failed = [view("b", failed=True), view("c", access="edit", failed=True)]
    assert stale(view("a"), *failed) == {"b": ("c", "edited")}


def test_a_failed_access_is_resolved_by_a_success_of_its_kind() -> None:
    failed_edit = view("a", access="edit", failed=True)
    assert stale(failed_edit, view("b"), view("c", access="edit")) == {
        "a": ("c", "resolved"),
        "b": ("c", "edited"),
    }
    assert stale(view("a", failed=True), view("b")) == {"a": ("b", "resolved")}


def test_a_command_run_again_replaces_its_last_output() -> None:
    runs = [seg(name, command="make test", access="run") for name in "abc"]
    assert stale(*runs, seg("d", command="make")) == {"a": ("b", "re-run"), "b": ("c", "re-run")}


def test_an_error_whose_command_has_succeeded_since_is_resolved() -> None:
    heap = heap_of(seg("a", command="make", failed=True), seg("b", command="make"))
    assert (_stale(heap), list(heap.root_index.errors.last(9))) == ({"a": ("b", "resolved")}, [])


def test_an_error_that_came_again_leaves_only_the_last_one_open() -> None:
    heap = heap_of(*[seg(name, command="make", failed=True) for name in "ab"])
    assert (_stale(heap), list(heap.root_index.errors.last(9))) == ({"a": ("b", "re-run")}, ["b"])


def test_the_same_output_once_more_replaces_the_older_one() -> None:
    assert stale(seg("a", OUTPUT), seg("b", OUTPUT, type="code")) == {"a": ("b", "identical")}


@pytest.mark.parametrize("fields", [{"type": "message"}, {"type": "note"}, {"type": "decision"}])
def test_what_somebody_says_twice_was_meant_twice(fields: dict[str, Any]) -> None:
    assert stale(seg("a", OUTPUT, **fields), seg("b", OUTPUT, **fields)) == {}


def test_short_outputs_are_not_compared() -> None:
    assert stale(seg("a", "ok"), seg("b", "ok")) == {}


def test_a_call_says_what_is_wanted_and_makes_nothing_stale() -> None:
    again = {"file_path": "f.py", "access": "read", "command": "cat f.py"}
    heap = heap_of(
        call("c1", "k1", **again), result("r1", "k1", **again), call("c2", "k2", **again)
    )
    assert _stale(heap) == {}
    heap.add(result("r2", "k2", **again))
    assert _stale(heap) == {"r1": ("r2", "re-run")}


def test_the_first_reason_stands() -> None:
    heap = heap_of(view("a", text=OUTPUT), view("b", access="edit"), view("c", text=OUTPUT))
    assert _stale(heap) == {"a": ("b", "edited")}


def test_what_is_stashed_grows_stale_too() -> None:
    heap = heap_of(view("a"))
    heap.stash("a")
    heap.add(view("b", access="edit"))
    heap.recall("a")
    assert _stale(heap) == {"a": ("b", "edited")}


def test_a_recalled_view_does_not_replace_the_newer_one() -> None:
    heap = heap_of(view("a", (1, 50)), view("b", (20, 90)))
    heap.stash("a")
    heap.recall("a")
    heap.add(view("c", (30, 40), access="edit"))
    assert _stale(heap) == {"a": ("c", "edited"), "b": ("c", "edited")}


def test_a_removed_view_is_forgotten() -> None:
    heap = heap_of(view("a", command="cat", text=OUTPUT))
    heap.remove("a")
    heap.add(view("b", command="cat", text=OUTPUT))
    assert _stale(heap) == {}


def test_a_heap_read_back_goes_on_where_it_was() -> None:
    heap = heap_of(view("a", (1, 50)), view("b", (60, 90)), seg("c", OUTPUT, command="make"))
    heap.stash("b")
    again = heap_from_json(heap_to_json(heap))
    for one in (heap, again):
        one.add_all([view("d", (40, 70), access="edit"), seg("e", OUTPUT, command="make")])
    assert _stale(again) == _stale(heap) == {
        "a": ("d", "edited"), "b": ("d", "edited"), "c": ("e", "re-run"),
    }  # fmt: skip


def test_a_file_with_many_views_is_followed_in_bounded_work() -> None:
    supersession = Supersession()
    for n in range(VIEWS_PER_FILE * 3):
        supersession.arrive(view(f"v{n}", (n * 10, n * 10 + 5)))
    replaced = supersession.arrive(view("all"))
    assert list(replaced) == [f"v{n}" for n in range(VIEWS_PER_FILE * 2, VIEWS_PER_FILE * 3)]


def test_code_that_is_put_in_supersedes_the_older_code_of_its_file() -> None:
    code = {"type": "code", "file_path": "f.py"}
    assert stale(seg("a", **code), seg("b", **code)) == {"a": ("b", "re-read")}
    assert stale(view("a"), seg("b", **code)) == {"a": ("b", "re-read")}
    assert stale(seg("a", **code), view("b", access="edit")) == {"a": ("b", "edited")}
    assert stale(seg("a", **code), seg("b", type="note", file_path="f.py")) == {}


def test_code_that_became_a_decision_is_no_view_of_its_file_any_more() -> None:
    heap = heap_of(seg("a", type="code", file_path="f.py"))
    heap.annotate("a", type="decision")
    heap.add(seg("b", type="code", file_path="f.py"))
    assert _stale(heap) == {}
