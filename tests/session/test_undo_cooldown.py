"""The undo cool-down: what was undone is left alone for a number of requests."""

from __future__ import annotations

from ctxgc.session.state import UNDO_COOLDOWN, UndoCooldown


def test_messages_are_left_alone_for_so_many_requests() -> None:
    undone = UndoCooldown()
    undone.note(["a"], 3)
    assert undone.left_alone(3) == undone.left_alone(2 + UNDO_COOLDOWN) == {"a"}
    assert undone.left_alone(3 + UNDO_COOLDOWN) == set()


def test_what_is_undone_next_goes_on_with_what_still_is_left_alone() -> None:
    undone = UndoCooldown()
    undone.note(["a"], 0)
    undone.note(["b"], 5)
    assert undone.left_alone(4 + UNDO_COOLDOWN) == {"a", "b"}
    undone.note(["c"], 5 + UNDO_COOLDOWN)
    assert undone.to_doc() == {"c": 5 + 2 * UNDO_COOLDOWN}


def test_a_collection_by_hand_ends_it_and_a_document_holds_it() -> None:
    undone, other = UndoCooldown(), UndoCooldown()
    undone.note(["a"], 0)
    other.restate(undone.to_doc())
    undone.clear()
    assert (undone.left_alone(1), other.left_alone(1)) == (set(), {"a"})
