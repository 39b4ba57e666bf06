"""Selection: essentials first, smaller content instead of none, and a threshold that rises."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.guard import ContentItem, ContextPruner, Focus, ScoredContent
from tests.requirements import requirement

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NO_FLOOR = -1.0

Rank = Literal["essential", "relevant", "weighed", "pruned"]
RANKS: dict[Rank, dict[str, Any]] = {
    "essential": {"is_essential": True},
    "relevant": {"task_id": "now"},
    "weighed": {},
    "pruned": {"tags": ("debug",)},
}
ORDER = list(RANKS)


def scored(
    name: str, size: int, score: int, rank: Rank = "weighed", bond: str | None = None
) -> ScoredContent:
    content = ContentItem(id=name, type="note", size=size, timestamp=NOW, bond=bond, **RANKS[rank])
    return ScoredContent(content, score)


def select(content: list[ScoredContent], target: int, floor: float = NO_FLOOR) -> list[str]:
    focus = Focus(now=NOW, current_task_id="now")
    pruner = ContextPruner(1_000, focus=focus, threshold=floor)
    return [item.id for item in pruner.select_content(content, target)]


@requirement("S4.pruner.essentials-first")
def test_essentials_come_first_whatever_their_score_and_size() -> None:
    content = [scored("best", 60, 90), scored("must", 50, 0, "essential")]
    assert select(content, 100) == ["must"]
    assert select(content, 110) == ["must", "best"]
    assert select(content, 20) == ["must"]


@requirement("S4.pruner.by-score")
def test_other_content_follows_by_score_and_a_misfit_does_not_stop_the_smaller_ones() -> None:
    """S4 stopped at the first item that did not fit."""
    content = [scored("low", 10, 10), scored("high", 30, 90), scored("big", 80, 50)]
    assert select(content, 50) == ["high", "low"]


def test_what_is_relevant_goes_before_what_is_only_weighed() -> None:
    content = [scored("near", 50, 10, "relevant"), scored("far", 60, 90)]
    assert select(content, 100) == ["near"]
    assert select(content, 49) == []


def test_of_equal_pieces_the_newest_stays() -> None:
    content = [scored(name, 10, 30) for name in "abc"]
    assert select(content, 20) == ["b", "c"]


@requirement("S4.tree.adjusts-threshold")
def test_the_threshold_rises_until_the_content_fits() -> None:
    """S4 lowered it, which keeps more when the context is already too big."""
    old = [
        ContentItem(id=str(n), type="note", size=10, timestamp=NOW, reference_count=n)
        for n in range(1, 5)
    ]
    pruner = ContextPruner(1_000, focus=Focus(now=NOW))
    thresholds = [pruner.prune(old, target).threshold for target in (40, 39, 20, 10, 9)]
    assert thresholds == [NO_FLOOR, 32, 34, 36, 38]


@requirement("S4.tree.threshold")
def test_content_above_the_threshold_stays_and_content_at_or_below_it_is_pruned() -> None:
    content = [scored("above", 10, 31), scored("at", 10, 30), scored("below", 10, 29)]
    assert select(content, 100, 30) == ["above"]


def test_what_is_pruned_by_rule_does_not_fill_the_room() -> None:
    assert select([scored("gone", 1, 99, "pruned")], 100) == []


def test_bonded_content_stays_or_goes_together() -> None:
    call, result = scored("call", 10, 5, bond="b"), scored("result", 60, 50, bond="b")
    rest = scored("rest", 40, 20)
    assert select([call, result, rest], 100) == ["call", "result"]
    assert select([call, result, rest], 69) == ["rest"]
    must = scored("call", 10, 5, "essential", bond="b")
    doomed = scored("result", 60, 50, "pruned", bond="b")
    assert select([must, doomed], 70) == ["call", "result"]


def test_a_bond_and_an_id_of_the_same_name_are_not_confused() -> None:
    content = [scored("x", 10, 9, "essential"), scored("y", 95, 9, bond="x")]
    assert select(content, 100) == ["x"]


# -- promises ---------------------------------------------------------------------------------------

ROWS = st.lists(
    st.tuples(
        st.integers(1, 30),
        st.integers(0, 100),
        st.sampled_from(ORDER),
        st.sampled_from([None, None, "b", "c"]),
    ),
    max_size=12,
)


def content_of(rows: list[Any]) -> list[ScoredContent]:
    return [scored(f"i{n}", *row) for n, row in enumerate(rows)]


def rank_of(one: ScoredContent) -> int:
    fields = {"is_essential": 0, "task_id": 1, "tags": 3}
    return next((rank for field, rank in fields.items() if getattr(one.content, field)), 2)


def naive(content: list[ScoredContent], target: int, floor: float) -> set[str]:
    """The judge: one group after the other, each time the best that has not been looked at yet."""
    groups: dict[str, list[ScoredContent]] = {}
    for one in content:
        bond = f"bond {one.content.bond}" if one.content.bond else one.content.id
        groups.setdefault(bond, []).append(one)
    newest_first = list(groups.values())[::-1]
    newest_first.sort(key=lambda g: (min(map(rank_of, g)), -max(one.score for one in g)))
    kept: set[str] = set()
    used = 0
    for group in newest_first:
        rank, size = min(map(rank_of, group)), sum(one.content.size for one in group)
        too_low = rank == 2 and max(one.score for one in group) <= floor
        if rank == 0 or (rank < 3 and not too_low and used + size <= target):
            kept |= {one.content.id for one in group}
            used += size
    return kept


@given(ROWS, st.integers(0, 200), st.sampled_from([NO_FLOOR, 0, 50]))
def test_the_choice_is_that_of_the_judge(rows: list[Any], target: int, floor: float) -> None:
    content = content_of(rows)
    assert set(select(content, target, floor)) == naive(content, target, floor)


@given(ROWS, st.integers(0, 200), st.integers(0, 50))
def test_a_larger_target_never_keeps_fewer_tokens(rows: list[Any], target: int, more: int) -> None:
    content = content_of(rows)
    sizes = {one.content.id: one.content.size for one in content}
    small, large = select(content, target), select(content, target + more)
    assert sum(sizes[name] for name in small) <= sum(sizes[name] for name in large)
