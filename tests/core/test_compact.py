"""Small ordered sets of ids."""

from __future__ import annotations

from ctxgc.core.compact import FEW, NO_IDS, with_id, without_id


def test_a_set_keeps_its_order_and_holds_everybody_once_at_any_size() -> None:
    ids = NO_IDS
    for n in (*range(FEW * 3), *range(FEW)):
        ids = with_id(ids, f"s{n}")
    assert list(ids) == [f"s{n}" for n in range(FEW * 3)]


def test_members_leave_at_any_size_and_strangers_change_nothing() -> None:
    few, many = ("a", "b"), dict.fromkeys("abcdefghijkl")
    assert (without_id(few, "a"), without_id(few, "z")) == (("b",), ("a", "b"))
    assert list(without_id(without_id(many, "a"), "z")) == list("bcdefghijkl")


def test_few_are_a_tuple_and_many_are_changed_in_place() -> None:
    few = with_id(("a",), "b")
    many = dict.fromkeys("abcdefghijkl")
    assert isinstance(few, tuple)
    assert with_id(many, "m") is many
