"""The two questions of the chart, and what a refusal tells about the window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.guard import Outlook, window_after
from ctxgc.guard.recovery import can_prune_safely, recovery_possible
from ctxgc.wire import Overflow, parse_overflow
from tests.requirements import requirement


@requirement("S4.flow.can-prune-safely")
@pytest.mark.parametrize(
    ("must_stay", "prunable", "safe"),
    [(94, 1, True), (95, 1, False), (94, 0, False), (0, 0, False)],
)
def test_pruning_is_safe_if_something_can_go_and_the_rest_is_below_the_critical_mark(
    must_stay: int, prunable: int, safe: bool
) -> None:
    assert can_prune_safely(Outlook(must_stay=must_stay, prunable=prunable), 95) is safe


@requirement("S4.flow.recovery-possible")
@pytest.mark.parametrize(
    ("minimum", "possible"), [(None, False), (100, True), (101, False), (0, True)]
)
def test_recovery_is_possible_if_a_verified_checkpoint_has_a_minimum_that_fits(
    minimum: int | None, possible: bool
) -> None:
    assert recovery_possible(minimum, 100) is possible


@pytest.mark.parametrize(
    ("overflow", "window"),
    [
        (Overflow(kind="tokens", limit=800, used=1_000), 80),
        (Overflow(kind="tokens", limit=90), 90),
        (Overflow(kind="tokens", limit=800), 99),
        (Overflow(kind="tokens", limit=50, used=40), 50),
        (Overflow(kind="tokens"), 99),
        (Overflow(kind="bytes", limit=32), 99),
    ],
)
def test_the_window_is_read_from_a_refusal_in_our_own_tokens(
    overflow: Overflow, window: int
) -> None:
    assert window_after(overflow, 100, 200) == window


def test_a_providers_own_words_give_the_window() -> None:
    said = parse_overflow(400, "prompt is too long: 250000 tokens > 200000 maximum")
    assert said is not None
    assert window_after(said, 100_000, 120_000) == 80_000


NUMBERS = st.none() | st.integers(0, 10_000)


@given(
    st.sampled_from(["tokens", "bytes"]), NUMBERS, NUMBERS, st.integers(1, 999), st.integers(1, 999)
)
def test_the_window_is_always_smaller_than_what_was_refused(
    kind: str, limit: int | None, used: int | None, size: int, ours: int
) -> None:
    window = window_after(Overflow(kind=kind, limit=limit, used=used), size, ours)  # type: ignore[arg-type]
    assert 0 <= window < size
    assert window <= ours
