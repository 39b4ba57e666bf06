"""How a provider counts, told from how its windows grew."""

from __future__ import annotations

import pytest

from ctxgc.tokens.growth import scale_by_growth


def test_the_scale_is_what_was_reported_for_what_was_counted() -> None:
    assert scale_by_growth([(1_000, 1_500), (3_000, 2_500)]) == 1.0
    assert scale_by_growth([(4_000, 3_000)]) == 0.75


@pytest.mark.parametrize("odd", [(100, 4_000), (4_000, 100), (0, 5_000), (-900, -900), (900, -5)])
def test_a_step_that_no_tokenizer_explains_is_left_out(odd: tuple[int, int]) -> None:
    assert scale_by_growth([(4_000, 3_000), odd]) == 0.75


def test_nothing_is_told_from_too_little() -> None:
    assert scale_by_growth([]) is None
    assert scale_by_growth([(1_999, 1_999), (10, 5_000)]) is None
