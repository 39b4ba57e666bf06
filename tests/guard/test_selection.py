"""Selection: essentials first, smaller content instead of none, and a threshold that rises."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import ShortfallError
from ctxgc.guard import ContentItem
from ctxgc.guard.pruner import Decision, ScoredContent, Selection, Verdict, select
from tests.requirements import requirement

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NO_FLOOR = -1.0


def scored(
    name: str, size: int, score: int, verdict: Verdict = Verdict.WEIGHED, bond: str | None = None
) -> ScoredContent:
    return ScoredContent(
        content=ContentItem(id=name, type="note", size=size, timestamp=NOW, bond=bond),
        score=score,
        decision=Decision(verdict, "because"),
    )


def ids(selection: Selection) -> list[str]:
    return [item.id for item in selection.chosen]


@requirement("S4.pruner.essentials-first")
def test_essentials_come_first_whatever_their_score() -> None:
    content = [scored("best", 60, 90), scored("must", 50, 0, Verdict.ESSENTIAL)]
    assert ids(select(content, 100, NO_FLOOR)) == ["must"]
    assert ids(select(content, 110, NO_FLOOR)) == ["must", "best"]


@requirement("S4.pruner.by-score")
def test_other_content_follows_by_score_and_a_misfit_does_not_stop_the_smaller_ones() -> None:
    """S4 stopped at the first item that did not fit."""
    content = [scored("low", 10, 10), scored("high", 30, 90), scored("big", 80, 50)]
    assert ids(select(content, 50, NO_FLOOR)) == ["high", "low"]


def test_essentials_that_do_not_fit_are_named_largest_first() -> None:
    """S4 did not look at the size of essentials."""
    content = [
        scored("small", 20, 0, Verdict.ESSENTIAL),
        scored("large", 90, 0, Verdict.ESSENTIAL),
        scored("other", 1, 99),
    ]
    with pytest.raises(
        ShortfallError, match="110 tokens, 10 more than the target of 100"
    ) as caught:
        select(content, 100, NO_FLOOR)
    assert caught.value.details == {
        "tokens_short": 10,
        "target": 100,
        "parts": [
            {"id": "large", "type": "note", "tokens": 90},
            {"id": "small", "type": "note", "tokens": 20},
        ],
    }


def test_what_is_relevant_goes_before_what_is_only_weighed() -> None:
    content = [scored("near", 50, 10, Verdict.RELEVANT), scored("far", 60, 90)]
    assert ids(select(content, 100, NO_FLOOR)) == ["near"]
    assert ids(select(content, 49, NO_FLOOR)) == []


@requirement("S4.tree.adjusts-threshold")
def test_the_threshold_rises_until_the_content_fits() -> None:
    """S4 lowered it, which keeps more when the context is already too big."""
    content = [scored(str(score), 10, score) for score in (10, 20, 30, 40)]
    thresholds = [select(content, target, NO_FLOOR).threshold for target in (40, 39, 20, 10, 9)]
    assert thresholds == [NO_FLOOR, 10, 20, 30, 40]


@requirement("S4.tree.threshold")
def test_content_above_the_threshold_stays_and_content_at_or_below_it_is_pruned() -> None:
    content = [scored("above", 10, 31), scored("at", 10, 30), scored("below", 10, 29)]
    assert ids(select(content, 100, 30)) == ["above"]


def test_what_is_pruned_by_rule_does_not_fill_the_room() -> None:
    assert ids(select([scored("gone", 1, 99, Verdict.PRUNED)], 100, NO_FLOOR)) == []


def test_bonded_content_stays_or_goes_together() -> None:
    call, result = scored("call", 10, 5, bond="b"), scored("result", 60, 50, bond="b")
    rest = scored("rest", 40, 20)
    assert ids(select([call, result, rest], 100, NO_FLOOR)) == ["call", "result"]
    assert ids(select([call, result, rest], 69, NO_FLOOR)) == ["rest"]
    must = scored("call", 10, 5, Verdict.ESSENTIAL, bond="b")
    doomed = scored("result", 60, 50, Verdict.PRUNED, bond="b")
    assert ids(select([must, doomed], 70, NO_FLOOR)) == ["call", "result"]
    with pytest.raises(ShortfallError):
        select([must, doomed], 69, NO_FLOOR)


def test_a_bond_and_an_id_of_the_same_name_are_not_confused() -> None:
    content = [scored("x", 10, 9, Verdict.ESSENTIAL), scored("y", 95, 9, bond="x")]
    assert ids(select(content, 100, NO_FLOOR)) == ["x"]


# -- promises ---------------------------------------------------------------------------------------

ROWS = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.integers(0, 100),
        st.sampled_from(Verdict),
        st.sampled_from([None, None, "b", "c"]),
    ),
    max_size=12,
)


def content_of(rows: list[Any]) -> list[ScoredContent]:
    made = [scored(f"i{n}", *row) for n, row in enumerate(rows)]
    return sorted(made, key=lambda one: -one.score)


def naive(content: list[ScoredContent], target: int, floor: float) -> set[str] | None:
    """The judge: one group after the other, each time the best that has not been looked at yet."""
    order = list(Verdict)
    groups: dict[str, list[ScoredContent]] = {}
    for one in content:
        groups.setdefault(f"bond {one.content.bond}" if one.content.bond else one.content.id, [])
        groups[f"bond {one.content.bond}" if one.content.bond else one.content.id].append(one)
    waiting = list(groups.values())
    kept: set[str] = set()
    while waiting:
        best = min(
            waiting,
            key=lambda g: (
                min(order.index(o.decision.verdict) for o in g),
                -max(o.score for o in g),
            ),
        )
        waiting.remove(best)
        verdict = order[min(order.index(o.decision.verdict) for o in best)]
        size = sum(o.content.size for o in best)
        used = sum(o.content.size for o in content if o.content.id in kept)
        if verdict is Verdict.PRUNED or (
            verdict is Verdict.WEIGHED and max(o.score for o in best) <= floor
        ):
            continue
        if used + size > target:
            if verdict is Verdict.ESSENTIAL:
                return None
            continue
        kept |= {o.content.id for o in best}
    return kept


def attempt(content: list[ScoredContent], target: int) -> Selection | ShortfallError:
    try:
        return select(content, target, NO_FLOOR)
    except ShortfallError as error:
        return error


@given(ROWS, st.integers(0, 200), st.sampled_from([NO_FLOOR, 0, 50]))
def test_the_choice_is_that_of_the_judge(rows: list[Any], target: int, floor: float) -> None:
    content = content_of(rows)
    expected = naive(content, target, floor)
    if expected is None:
        with pytest.raises(ShortfallError):
            select(content, target, floor)
    else:
        assert set(ids(select(content, target, floor))) == expected


@given(ROWS, st.integers(0, 200))
def test_the_choice_fits_or_the_essentials_do_not(rows: list[Any], target: int) -> None:
    content = content_of(rows)
    chosen = attempt(content, target)
    if isinstance(chosen, ShortfallError):
        assert sum(part["tokens"] for part in chosen.details["parts"]) > target
        return
    assert chosen.size == sum(item.size for item in chosen.chosen) <= target
    essential = {o.content.id for o in content if o.decision.verdict is Verdict.ESSENTIAL}
    assert essential <= set(ids(chosen))


@given(ROWS, st.integers(0, 200), st.integers(0, 50))
def test_a_larger_target_never_keeps_fewer_tokens(rows: list[Any], target: int, more: int) -> None:
    content = content_of(rows)
    small = attempt(content, target)
    if isinstance(small, Selection):
        assert small.size <= select(content, target + more, NO_FLOOR).size


@given(ROWS, st.integers(0, 200))
def test_everything_above_the_risen_threshold_is_kept(rows: list[Any], target: int) -> None:
    content = content_of([(*row[:3], None) for row in rows])
    chosen = attempt(content, target)
    if isinstance(chosen, ShortfallError):
        return
    above = {
        o.content.id
        for o in content
        if o.decision.verdict is Verdict.WEIGHED and o.score > chosen.threshold
    }
    assert above <= set(ids(chosen))
