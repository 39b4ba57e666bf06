"""What was undone is left alone for so many requests."""

from __future__ import annotations

from ctxgc.session.state import LEFT_ALONE, Undone


def test_messages_are_left_alone_for_so_many_requests() -> None:
    undone = Undone()
    undone.note(["a"], 3)
    assert undone.left_alone(3) == undone.left_alone(2 + LEFT_ALONE) == {"a"}
    assert undone.left_alone(3 + LEFT_ALONE) == set()


def test_what_is_undone_next_goes_on_with_what_still_is_left_alone() -> None:
    undone = Undone()
    undone.note(["a"], 0)
    undone.note(["b"], 5)
    assert undone.left_alone(4 + LEFT_ALONE) == {"a", "b"}
    undone.note(["c"], 5 + LEFT_ALONE)
    assert undone.to_doc() == {"c": 5 + 2 * LEFT_ALONE}


def test_a_collection_by_hand_ends_it_and_a_document_holds_it() -> None:
    undone, other = Undone(), Undone()
    undone.note(["a"], 0)
    other.restate(undone.to_doc())
    undone.clear()
    assert (undone.left_alone(1), other.left_alone(1)) == (set(), {"a"})
