"""Gaps: our policies compared with the oracles and the best of the others."""

from __future__ import annotations

from typing import Any

from ctxgc.lab import RunResult
from ctxgc.lab.summary import gaps

KINDS = {"never": "base", "mine": "ours", "seer": "oracle", "good": "peer", "bad": "restated"}


def result(policy: str, run: str = "a", **fields: Any) -> RunResult:
    usual = {"limit": 9, "tokens": 9, "messages": 3, "requests": 100, "unpruned": 10.0}
    counts = {"bill": 8.0, "needs": 10, "resident": 10, **fields}
    return RunResult(run=run, group=run, source="s", policy=policy, **usual, **counts)


def found(*results: RunResult, window: bool = True) -> list[tuple[str, float, float | None]]:
    return [
        (gap.other, gap.bill.value, gap.non_resident.value if gap.non_resident else None)
        for gap in gaps(KINDS, results, window=window)
    ]


def test_ours_is_compared_with_each_oracle_and_the_best_other() -> None:
    results = [
        result("mine", bill=4.0, resident=9),
        result("seer", bill=2.0, resident=8),
        result("good", resident=6),
        result("bad", resident=5),
    ]
    assert found(*results) == [("seer", 2.0, 0.5), ("good", 0.5, 0.25)]
    assert found(*results, window=False) == [("seer", 2.0, 0.5)]


def test_who_overflows_or_fails_is_not_the_best() -> None:
    results = [result("mine"), result("good", over=5), result("bad", resident=5)]
    assert [other for other, _, _ in found(*results)] == ["bad"]
    more = [result("mine", "b"), result("good", "b", error="gone"), result("bad", "b")]
    fits = [result("mine"), result("good"), result("bad", resident=5)]
    assert [other for other, _, _ in found(*fits, *more)] == ["bad"]


def test_nothing_to_miss_gives_no_ratio() -> None:
    assert found(result("mine"), result("seer")) == [("seer", 1.0, None)]


def test_only_runs_that_both_played_count() -> None:
    results = [result("mine", bill=4.0), result("mine", "b", bill=90.0), result("seer")]
    assert found(*results) == [("seer", 0.5, None)]
