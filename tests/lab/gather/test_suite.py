"""The suite: the same report however many processes, and tables that say what was found."""

from __future__ import annotations

import msgspec
import pytest

from ctxgc.errors import ConfigError, InputError
from ctxgc.lab import GatherSuite, gather_markdown, gather_tables, run_gather

SMALL = GatherSuite(policies=("never", "ctxgc"), windows=(16_000,), every=29)


def test_two_processes_make_the_same_report() -> None:
    seen: list[int] = []
    one = run_gather(SMALL, 1, lambda: seen.append(1))
    assert msgspec.json.encode(one) == msgspec.json.encode(run_gather(SMALL, 2))
    assert len(seen) == one.tasks == 11
    assert [r.policy for r in one.results] == ["never", "ctxgc"] * one.tasks


def test_no_task_of_the_shipped_presets_loses_what_it_gathered() -> None:
    """The small run of CI: whatever leaves a view is behind a handle in it, and what fits is there."""
    suite = GatherSuite(
        policies=("never", "ctxgc", "ctxgc-careful", "ctxgc-lean"), windows=(16_000,), every=23
    )
    report = run_gather(suite)
    ours = [result for result in report.results if result.policy.startswith("ctxgc")]
    assert [(r.plan.id, r.lost, r.over, r.error) for r in ours if r.lost or r.over or r.error] == []
    roomy = [result for result in report.results if result.plan.fill <= 0.5]
    assert [result.plan.id for result in roomy if not result.from_view] == []


def test_the_tables_have_a_row_for_each_policy_and_a_column_for_each_trait() -> None:
    report = run_gather(SMALL)
    overall, *crossed = gather_tables(report, matrix=True)
    assert [row[:2] for row in overall.rows] == [
        ("never", "all"), ("ctxgc", "all"), ("never", "needed"), ("ctxgc", "needed"),
        ("never", "nothing"), ("ctxgc", "nothing"),
    ]  # fmt: skip
    assert [table.title.split(":")[0] for table in crossed] == [
        "by tool", "by family", "by fill", "by content", "by format", "never", "ctxgc",
    ]  # fmt: skip
    assert [row[:2] for row in crossed[0].rows] == [("never", "16k"), ("ctxgc", "16k")]
    assert all(len(row) == len(table.head) for table in crossed for row in table.rows)
    text = gather_markdown(report)
    assert text.startswith("Gather and use: 11 scripted tasks, ")
    assert "\n| policy | window | " in text


def test_bad_choices_are_refused() -> None:
    with pytest.raises(ConfigError, match="policy"):
        run_gather(GatherSuite(policies=("nobody",)))
    with pytest.raises(InputError, match="no task is chosen"):
        GatherSuite(policies=(), families=("nothing",)).plans()
