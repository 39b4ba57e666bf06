"""Retention: which checkpoints are kept, judged by rules applied one checkpoint at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import ConfigError
from ctxgc.guard import CheckpointInfo, RetentionPolicy
from ctxgc.guard.checkpoint_store import dropped

START = datetime(2026, 1, 1, tzinfo=UTC)


def info(number: int, *, hours: int = 0, label: str = "", size: int = 10) -> CheckpointInfo:
    return CheckpointInfo(
        checkpoint_id=f"c{number:03}",
        label=label,
        timestamp=START + timedelta(hours=hours),
        triggers=(),
        size=size,
    )


def test_the_newest_stay() -> None:
    policy = RetentionPolicy(newest=2, days=0)
    assert dropped(policy, [info(n, hours=n) for n in range(5)]) == ["c000", "c001", "c002"]


def test_the_labelled_stay_unless_the_policy_says_otherwise() -> None:
    shelf = [info(0, label="release"), info(1, hours=1), info(2, hours=2)]
    assert dropped(RetentionPolicy(newest=1, days=0), shelf) == ["c001"]
    assert dropped(RetentionPolicy(newest=1, days=0, labelled=False), shelf) == ["c000", "c001"]


def test_the_newest_of_each_of_the_latest_days_stays() -> None:
    shelf = [info(n, hours=12 * n) for n in range(8)]
    assert dropped(RetentionPolicy(newest=1, days=3), shelf) == [
        "c000",
        "c001",
        "c002",
        "c004",
        "c006",
    ]


def test_too_many_bytes_let_the_unlabelled_and_oldest_go_first_and_never_the_newest() -> None:
    shelf = [info(0, label="a"), info(1, hours=1), info(2, hours=2), info(3, hours=3, size=100)]
    assert dropped(RetentionPolicy(max_bytes=121), shelf) == ["c001"]
    assert dropped(RetentionPolicy(max_bytes=110), shelf) == ["c001", "c002"]
    assert dropped(RetentionPolicy(max_bytes=1), shelf) == ["c000", "c001", "c002"]


@pytest.mark.parametrize(("field", "value"), [("newest", 0), ("days", -1), ("max_bytes", 0)])
def test_a_policy_that_keeps_nothing_is_refused(field: str, value: int) -> None:
    with pytest.raises(ConfigError, match=field):
        RetentionPolicy(**{field: value})


SHELVES = st.lists(
    st.tuples(st.integers(0, 200), st.booleans(), st.integers(1, 50)), min_size=1, max_size=15
)


@given(SHELVES, st.integers(1, 5), st.integers(0, 4))
def test_what_goes_is_what_no_rule_names(
    rows: list[tuple[int, bool, int]], newest: int, days: int
) -> None:
    shelf = [
        info(n, hours=hours, label="x" * labelled, size=size)
        for n, (hours, labelled, size) in enumerate(rows)
    ]

    def younger(one: CheckpointInfo) -> list[CheckpointInfo]:
        mine = (one.timestamp, one.checkpoint_id)
        return [other for other in shelf if (other.timestamp, other.checkpoint_id) > mine]

    def is_kept(one: CheckpointInfo) -> bool:
        day = one.timestamp.date()
        later_days = {other.timestamp.date() for other in younger(one)}
        return (
            bool(one.label)
            or len(younger(one)) < newest
            or (day not in later_days and len(later_days) < days)
        )

    policy = RetentionPolicy(newest=newest, days=days)
    assert set(dropped(policy, shelf)) == {one.checkpoint_id for one in shelf if not is_kept(one)}


@given(SHELVES, st.integers(1, 300))
def test_the_bytes_are_kept_within_the_limit_or_only_the_newest_is_left(
    rows: list[tuple[int, bool, int]], limit: int
) -> None:
    shelf = [info(n, hours=hours, size=size) for n, (hours, _, size) in enumerate(rows)]
    gone = set(dropped(RetentionPolicy(max_bytes=limit), shelf))
    left = [one for one in shelf if one.checkpoint_id not in gone]
    newest = max(shelf, key=lambda one: (one.timestamp, one.checkpoint_id))
    assert newest in left
    assert sum(one.size for one in left) <= limit or left == [newest]
