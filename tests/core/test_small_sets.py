"""Small ordered sets of ids."""

from __future__ import annotations

import pytest

from ctxgc.core.links import FEW, Ids, enter, leave


def test_a_set_keeps_its_order_and_holds_everybody_once_at_any_size() -> None:
    table: dict[str, Ids] = {}
    for n in (*range(FEW * 3), *range(FEW)):
        enter(table, "key", f"s{n}")
    assert list(table["key"]) == [f"s{n}" for n in range(FEW * 3)]


@pytest.mark.parametrize("size", [2, FEW, FEW + 1, FEW * 3])
def test_members_leave_at_any_size_and_strangers_change_nothing(size: int) -> None:
    table: dict[str, Ids] = {}
    for n in range(size):
        enter(table, "key", f"s{n}")
    for gone in ("s0", "s0", "stranger"):
        leave(table, "key", gone)
    assert list(table["key"]) == [f"s{n}" for n in range(1, size)]
    for n in range(1, size):
        leave(table, "key", f"s{n}")
    assert table == {}


def test_few_are_a_tuple_and_many_are_changed_in_place() -> None:
    table: dict[str, Ids] = {"few": ("a",), "many": dict.fromkeys("abcdefghijkl")}
    many = table["many"]
    enter(table, "few", "b")
    enter(table, "many", "m")
    leave(table, "many", "a")
    assert table["few"] == ("a", "b")
    assert table["many"] is many
    assert list(many) == list("bcdefghijklm")
