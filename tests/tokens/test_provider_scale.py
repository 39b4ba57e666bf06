"""How a provider counts, told from how its windows grew."""

from __future__ import annotations

import pytest

from ctxgc.tokens import Reported, scale_of, tokens_before
from ctxgc.tokens.messages import scale_by_growth


def test_the_scale_is_what_was_reported_for_what_was_counted() -> None:
    assert scale_by_growth([(1_000, 1_500), (3_000, 2_500)]) == 1.0
    assert scale_by_growth([(4_000, 3_000)]) == 0.75


@pytest.mark.parametrize("odd", [(100, 4_000), (4_000, 100), (0, 5_000), (-900, -900), (900, -5)])
def test_a_step_that_no_tokenizer_explains_is_left_out(odd: tuple[int, int]) -> None:
    assert scale_by_growth([(4_000, 3_000), odd]) == 0.75


def test_nothing_is_told_from_too_little() -> None:
    assert scale_by_growth([]) is None
    assert scale_by_growth([(1_999, 1_999), (10, 5_000)]) is None


def test_requests_of_one_window_tell_the_scale_by_how_they_grew() -> None:
    grown = [Reported(1_000, 9_000), Reported(5_000, 12_000), Reported(6_000, 99_000, window=2)]
    assert scale_of(grown) == 0.75
    assert scale_of(grown[:1]) is None
    assert scale_of([]) is None


def test_what_was_reported_before_messages_were_cut_says_nothing() -> None:
    before = [Reported(100, 9_000), Reported(300, 50_000), Reported(5_000, 60_000)]
    lowered = Reported(8_000, 15_000, beside=9_000)
    assert scale_of([*before, lowered]) == 0.75
    assert scale_of([*before, lowered, Reported(12_000, 17_000)]) == 0.5
    assert scale_of([*before, Reported(10, 9_010, beside=9_000)]) is None


def test_what_stands_in_front_of_a_line_is_what_has_a_smaller_one() -> None:
    assert tokens_before([(5, 10), (2, 7), (5, 1)], [1, 2, 3, 5, 6]) == [0, 0, 7, 7, 18]
