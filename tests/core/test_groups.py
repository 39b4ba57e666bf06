"""Groups of segments."""

from __future__ import annotations

import pytest

from ctxgc.core.links import FEW, NOBODY, Group, depart, ids, join, members
from tests.core.build import calls, seg


def grown(size: int) -> dict[str, Group]:
    table: dict[str, Group] = {}
    for n in range(size):
        join(table, "key", seg(f"s{n}"))
    return table


@pytest.mark.parametrize("size", [1, FEW, FEW + 1, FEW * 3])
def test_a_group_keeps_its_order_and_holds_everybody_once_at_any_size(size: int) -> None:
    table, names = grown(size), [f"s{n}" for n in range(size)]
    join(table, "key", seg("s0"))
    assert list(ids(table["key"])) == names
    assert [segment.segment_id for segment in members(table["key"])] == names


@pytest.mark.parametrize("size", [2, FEW, FEW + 1, FEW * 3])
def test_members_depart_at_any_size_and_strangers_change_nothing(size: int) -> None:
    table = grown(size)
    for gone in ("s0", "s0", "stranger"):
        depart(table, "key", seg(gone))
    assert list(ids(table["key"])) == [f"s{n}" for n in range(1, size)]
    for n in range(1, size):
        depart(table, "key", seg(f"s{n}"))
    depart(table, "key", seg("s0"))
    assert table == {}


def test_nobody_has_no_members_and_no_ids() -> None:
    assert (list(members(NOBODY)), list(ids(NOBODY))) == ([], [])


def test_coming_and_going_costs_the_same_in_a_group_of_any_size() -> None:
    def work(size: int) -> int:
        table, new = grown(size), seg("new")
        coming = calls(lambda: join(table, "key", new))
        return coming + calls(lambda: depart(table, "key", new))

    assert work(FEW * 100) <= work(FEW * 2)
