"""Whatever a summarizer does, the outcome says it and nothing is raised or lost."""

from __future__ import annotations

import contextvars
import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.summarizers import SummaryOutcome, SummaryRunner, run_summarizer
from tests.requirements import requirement

TEXT = "one two three four five"


class Words:
    """Counts words."""

    def count(self, text: str) -> int:
        return len(text.split())


def run(summarizer: Any, text: str = TEXT, timeout: float = 60.0) -> SummaryOutcome:
    return run_summarizer(summarizer, text, timeout=timeout, counter=Words())


@requirement("S3.options.summarizer")
def test_a_summary_comes_back_with_its_tokens() -> None:
    outcome = run(lambda text: f"  {text[:7]}\n")
    assert outcome == SummaryOutcome(text="one two", tokens=2)
    assert outcome.ok


def test_a_coroutine_function_works_as_well() -> None:
    async def summarizer(text: str) -> str:
        return text[:3]

    assert run(summarizer) == SummaryOutcome(text="one", tokens=1)


def raises(_: str) -> str:
    raise ValueError("key sk-abcdefghijklmnop is bad")


def exits(_: str) -> str:
    sys.exit("bye")


@pytest.mark.parametrize(
    ("summarizer", "outcome"),
    [
        (raises, SummaryOutcome(failure="raised", detail="ValueError: key *** is bad")),
        (exits, SummaryOutcome(failure="raised", detail="SystemExit: bye")),
        (lambda _: None, SummaryOutcome(failure="not_text", detail="got NoneType")),
        (lambda _: b"x", SummaryOutcome(failure="not_text", detail="got bytes")),
        (lambda _: "", SummaryOutcome(failure="empty", detail="the summary is blank")),
        (lambda _: " \n\t ", SummaryOutcome(failure="empty", detail="the summary is blank")),
        (lambda t: t, SummaryOutcome(failure="not_shorter", detail="5 tokens for 5")),
        (lambda t: t + " six", SummaryOutcome(failure="not_shorter", detail="6 tokens for 5")),
        (lambda: "x", None),
    ],
)
def test_each_failure_is_told_apart(summarizer: Any, outcome: SummaryOutcome | None) -> None:
    got = run(summarizer)
    assert not got.ok
    if outcome is None:
        assert (got.text, got.failure) == (None, "raised")
    else:
        assert got == outcome


def test_a_hanging_summarizer_costs_one_wait_and_one_thread() -> None:
    release, began = threading.Event(), threading.Event()
    asked: list[threading.Thread] = []

    def hangs(text: str) -> str:
        asked.append(threading.current_thread())
        began.set()
        release.wait()
        return "late"

    runner = SummaryRunner(hangs, 0.01, Words())
    assert runner.run(TEXT) == SummaryOutcome(failure="timeout", detail="no answer in 0.01 s")
    assert [runner.run(TEXT).failure for _ in range(3)] == ["still_hanging"] * 3
    began.wait()
    (thread,) = asked
    release.set()
    thread.join()
    assert SummaryRunner(lambda _: "late", 60, Words()).run(TEXT).text == "late"
    runner._timeout = 60  # what hung answers at once now, but a busy core may take its time
    assert runner.run(TEXT) == SummaryOutcome(text="late", tokens=1)


def test_the_callers_context_reaches_the_summarizer() -> None:
    trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace")
    trace.set("abc")
    assert run(lambda _: trace.get()).text == "abc"


@given(st.one_of(st.text(), st.none(), st.integers(), st.binary()), st.text())
def test_any_answer_is_a_shorter_text_or_a_failure(answer: Any, text: str) -> None:
    outcome = run(lambda _: answer, text)
    assert (outcome.text is None) == (outcome.failure is not None)
    if outcome.text is not None:
        assert outcome.tokens == Words().count(outcome.text) < Words().count(text)
