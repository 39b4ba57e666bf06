"""gc_summarize: the oldest turns become one summary, whatever the summarizer does."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from ctxgc.config import GCConfig
from tests.requirements import requirement
from tests.strategies.build import collect, ids, requests, size_of, talk

PRESSURE = GCConfig(preserve_recent_turns=2)


def short(conversation: str) -> str:
    """Return a summary that is much shorter than any conversation here."""
    return f"They spoke of {conversation.count('request')} requests."


@requirement(
    "S3.summarize.compresses", "S3.summarize.recent-kept", "S2.plugins.summarize-removal-list"
)
def test_old_turns_become_one_summary_and_the_recent_stay() -> None:
    history = talk(10)
    options = {"summarizer": short, "preserve_recent_turns": 3}
    new, result = collect("gc_summarize", history, target=0, options=options, limit=9_999)
    summary = next(m for m in new if m.origin == "gc_summary")
    assert requests(new) == [0, 7, 8, 9]
    assert summary.text().endswith("They spoke of 6 requests.")
    assert ids(new) == ["m0", "gc_summary_1", *ids(history[14:])]
    assert {item.reason for item in result.removal_list} == {"summarized"}
    keys = [item.child_key for item in result.removal_list]
    assert keys == ["m1", *(f"turn_{number}" for number in range(1, 7))]
    assert [i for item in result.removal_list for i in item.message_ids] == ids(history[1:14])


@requirement("S2.plugins.summarize-tokens")
def test_the_result_tells_the_tokens_of_the_summary() -> None:
    history = talk(10)
    new, result = collect("gc_summarize", history, target=300, options={"summarizer": short})
    summaries = [m for m in new if m.origin == "gc_summary"]
    assert result.details["summary_tokens"] == size_of(summaries)
    assert result.details["summaries"] == ids(summaries)
    assert result.tokens_after == size_of(new)


def test_only_as_many_turns_are_summarised_as_the_target_asks_for() -> None:
    history = talk(20)
    new, _ = collect(
        "gc_summarize", history, target=size_of(history) * 3 // 4, options={"summarizer": short}
    )
    assert len(requests(new)) > 10


@requirement("S3.summarize.summarizer-required")
def test_without_a_summarizer_it_says_so_and_an_extract_takes_its_place() -> None:
    history = talk(10)
    new, result = collect("gc_summarize", history, target=500)
    assert result.success
    assert result.details["summarizer_failures"] == ["empty: no summarizer is configured"]
    assert [m.origin for m in new].count("gc_summary") == 1
    assert result.tokens_after < result.tokens_before


def raises(conversation: str) -> str:
    raise RuntimeError("the service is down")


@pytest.mark.parametrize(
    ("summarizer", "failure"),
    [
        (raises, "raised: RuntimeError: the service is down"),
        (lambda text: "", "empty"),
        (lambda text: text + text, "not_shorter"),
        (lambda text: 7, "not_text"),
    ],
)
def test_a_summarizer_that_fails_loses_nothing_and_stops_no_relief(
    summarizer: Any, failure: str
) -> None:
    history = talk(10)
    new, result = collect("gc_summarize", history, target=500, options={"summarizer": summarizer})
    assert result.details["summarizer_failures"][0].startswith(failure)
    assert result.tokens_after < result.tokens_before
    assert requests(new)[-1] == 9


def test_a_summarizer_that_hangs_costs_its_time_once() -> None:
    config = GCConfig(summarizer_timeout_seconds=0.05)
    history, release = talk(10), threading.Event()
    _, result = collect(
        "gc_summarize",
        history,
        target=500,
        config=config,
        options={"summarizer": lambda text: release.wait()},
    )
    release.set()
    failures = result.details["summarizer_failures"]
    assert failures[0] == "timeout: no answer in 0.05 s"
    assert all(f.startswith("still_hanging") for f in failures[1:])
    assert result.tokens_after < result.tokens_before


def test_under_pressure_turns_go_where_no_summary_is_shorter() -> None:
    history = talk(8, 1)
    new, result = collect("gc_summarize", history, target=30, limit=60, config=PRESSURE)
    assert requests(new) == [0, 6, 7]
    assert {item.reason for item in result.removal_list} <= {"summarized", "truncated"}


def test_under_pressure_a_summary_grows_shorter_before_it_goes() -> None:
    history = talk(40)
    target = size_of(history) // 5
    new, result = collect("gc_summarize", history, target=target, limit=target, config=PRESSURE)
    (summary,) = [m for m in new if m.origin == "gc_summary"]
    assert target * 3 // 4 < result.tokens_after <= target
    assert (result.shortfall, result.details["summary_tokens"]) == (0, size_of([summary]))
