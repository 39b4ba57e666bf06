"""Where to cut: never at a loss, never beyond the guard."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector import Billing
from ctxgc.collector.price import LEAST_REQUESTS, Sizes, best_cut
from ctxgc.economics import price_sheet
from tests.collector.agent import HOW, empty_message

SHEET = price_sheet("anthropic-5m")
RICH = Billing(bill=0.0, unpruned_bill=1e9)


def sizes_of(tokens: list[int]) -> Sizes:
    sizes = Sizes(lambda m: int(m.message_id.partition("-")[2]))
    sizes.follow([empty_message(f"{place}-{size}") for place, size in enumerate(tokens)])
    return sizes


class Dead(msgspec.Struct):
    """A result that may leave: its place, what it would save, its rent, and the request it was born at."""

    place: int
    saving: float
    rent: float
    born: int = 0


def young(place: int, saving: float, requests: int = 20) -> Dead:
    return Dead(place, saving, SHEET.read * saving, requests - 1)


def cut(
    offers: list[Dead], tokens: list[int], books: Billing = RICH, requests: int = 20, fresh: int = 0
) -> int | None:
    return best_cut(
        offers[::-1], sizes_of(tokens), len(tokens) - fresh, books=books, sheet=SHEET, how=HOW,
        requests=requests,
    )  # fmt: skip


OFFERS = st.lists(st.tuples(st.integers(50, 4_000), st.floats(0.3, 0.95)), min_size=1, max_size=8)


@given(OFFERS, st.integers(1, 60), st.floats(0, 50_000), st.floats(0, 50_000))
def test_a_cut_wins_more_than_it_re_writes_and_stays_within_the_guard(
    found: list[tuple[int, float]], requests: int, bill: float, unpruned: float
) -> None:
    tokens = [size for size, _ in found]
    offers = [young(place, size * share, requests) for place, (size, share) in enumerate(found)]
    books = Billing(bill=bill, unpruned_bill=unpruned)
    place = cut(offers, tokens, books, requests)
    if place is not None:
        won = sum(offer.saving for offer in offers[place:])
        rewritten = sum(tokens[place:]) - won
        expected = min(HOW.horizon, max(LEAST_REQUESTS, requests))
        assert expected * SHEET.read * won > (SHEET.write - SHEET.read) * rewritten
        paid = bill + SHEET.read * sum(tokens[:place]) + SHEET.write * rewritten
        assert paid <= (1 + HOW.guard) * unpruned + 1e-6


def test_nothing_to_win_is_no_cut() -> None:
    assert cut([], [100, 100]) is None
    assert cut([young(0, 10.0)], [1_000, 1_000]) is None


def test_a_deep_cut_waits_until_the_dead_have_cost_enough() -> None:
    due = HOW.patience * (SHEET.write - SHEET.read) * (2_000 - 900)
    early = Dead(place=0, saving=900.0, rent=due - 1)
    late = Dead(place=0, saving=900.0, rent=due)
    assert [cut([offer], [1_000, 1_000]) for offer in (early, late)] == [None, 0]


def test_a_cold_cache_costs_nothing_to_break() -> None:
    offer = Dead(place=0, saving=100.0, rent=0.0)
    cold = Billing(bill=0.0, unpruned_bill=1e9, is_cold=True)
    assert cut([offer], [1_000, 9_000]) is None
    assert cut([offer], [1_000, 9_000], cold) == 0
