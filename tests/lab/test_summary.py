"""The summary: one row for each policy, and its own report compared with what was seen."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxgc.economics import price_sheet
from ctxgc.lab import CopiedBits, Figure, RunResult, is_usable
from ctxgc.lab.policies import Never
from ctxgc.lab.summary import Span, report, spans, summarize


def result(name: str = "r", **fields: Any) -> RunResult:
    known = {"group": name, "source": "s", "policy": "never", "limit": 10, "tokens": 5}
    counts = {"messages": 4, "requests": 2, "unpruned": 100.0, "bill": 100.0}
    return RunResult(run=name, **{**known, **counts, **fields})


def test_a_row_sums_up_what_the_policy_played() -> None:
    row = summarize(
        Never(),
        [
            result("a", bill=50.0, steps=2, strict=1, clean=2, needs=4, resident=3, named=1, refused=1,
                   rules={"orphan": 1}),
            result("b", bill=101.0, steps=2, strict=2, clean=2, needs=4, resident=4, over=1, breaks=2,
                   counts={"collections": 3.0}),
            result("c", error="TimeoutError: late"),
        ],
    )  # fmt: skip
    assert (row.runs, row.failed, row.errors) == (2, 1, ["TimeoutError: late"])
    assert (row.bill.value, row.strict.value, row.clean.value) == (0.755, 0.75, 1.0)
    assert (row.non_resident.value, row.named.value, row.lost.value) == (0.125, 0.125, 0.0)
    assert (row.worst, row.worst_run, row.dearer) == (1.01, "b", 0.5)
    assert (row.refused, row.rules, row.over, row.breaks) == (1, {"orphan": 1}, 1, 2)
    assert (row.collections, row.off, row.report_error) == (3.0, 1, None)


def test_the_excess_of_bits_is_a_share_of_the_whole_and_of_what_a_bare_view_costs_more() -> None:
    some = {"bits_steps": 2, "bits": 110, "bits_whole": 100, "bits_bare": 150}
    row = summarize(Never(), [result("a", **some), result("b", **{**some, "bits": 100})])
    assert row.bits == CopiedBits(
        excess=Figure(value=0.05, low=0.0, high=0.1, of=200),
        share=Figure(value=0.1, low=0.0, high=0.2, of=100),
        steps=4,
    )
    assert summarize(Never(), [result("a")]).bits is None


def test_a_constant_prefix_makes_every_saving_a_smaller_share() -> None:
    row = summarize(Never(), [result(bill=50.0, prefix=150.0)])
    assert (row.bill.value, row.bill_15k.value) == (0.5, 0.8)


def test_savings_are_compared_where_all_fits_and_bills_where_it_does_not() -> None:
    said = {"reported_bill": 60.0, "reported_unpruned_bill": 101.0}
    assert result(bill=50.0, counts=said).report_error == (50 - 41) / 50
    assert result(bill=50.0, tokens=50, counts=said).report_error == 0.2
    assert result(bill=50.0).report_error is None
    assert result(bill=50.0, counts={**said, "overflows": 1}).report_error is None


def test_a_policy_that_failed_everywhere_has_a_row_too() -> None:
    row = summarize(Never(), [result(error="gone")])
    assert (row.runs, row.failed, row.worst_run, row.collections) == (0, 1, "", None)


def test_times_are_told_by_the_length_of_the_history() -> None:
    played = [result(seconds=((10, 0.001), (20, 0.003), (300, 0.002)))]
    assert spans(played) == [
        Span(below=250, requests=2, p50=3.0, p99=3.0, most=3.0),
        Span(below=1_000, requests=1, p50=2.0, p99=2.0, most=2.0),
    ]
    assert spans([result()]) == []


def test_a_report_counts_each_run_once() -> None:
    found = report(
        [Never()],
        [result("a", steps=1, needs=2), result("b", group="a", steps=1, needs=3)],
        version="1",
        source="made",
        regime="cost",
        sheet=price_sheet("none"),
    )
    assert (found.runs, found.groups, found.requests, found.tokens) == (2, 1, 4, 10)
    assert (found.steps, found.needs, len(found.rows)) == (2, 5, 1)


def test_a_report_has_each_half_by_itself_if_there_are_both() -> None:
    asked = {"version": "1", "source": "s", "regime": "cost", "sheet": price_sheet("none")}
    fit = [result("a", group="group-0", bill=50.0), result("b", group="group-3", bill=60.0)]
    judge = [result("c", group="group-1", bill=80.0)]
    found = report([Never()], [*fit, *judge], **asked).halves
    assert [(each.half, each.runs, each.groups, each.requests) for each in found] == [
        ("fit", 2, 2, 4),
        ("judge", 1, 1, 2),
    ]
    assert [each.rows for each in found] == [[summarize(Never(), part)] for part in (fit, judge)]
    assert report([Never()], fit, **asked).halves == []


def test_one_wrong_request_in_a_hundred_is_forgiven_and_an_oracle_is_never_usable() -> None:
    asked = {"version": "1", "source": "s", "regime": "window:50%", "sheet": price_sheet("none")}
    found = {
        count: report([Never()], [result(requests=200, over=1, refused=count - 1)], **asked)
        for count in (2, 3)
    }
    assert {count: is_usable(made, made.rows[0]) for count, made in found.items()} == {
        2: True,
        3: False,
    }
    oracle = msgspec.structs.replace(found[2].rows[0], kind="oracle")
    assert not is_usable(found[2], oracle)
