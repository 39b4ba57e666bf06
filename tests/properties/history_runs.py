"""Runs of the history cases: feed, collect, judge, and so on to the end of the conversation."""

from __future__ import annotations

from collections import Counter
from random import Random

from ctxgc import Session
from ctxgc.collector import GCResult, GCTriggerReason
from ctxgc.core import Format
from ctxgc.errors import ContextOverflowError
from tests.fakes import Clock
from tests.properties.history_cases import (
    SYSTEM_TEXT,
    TOOL_SCHEMA,
    Case,
    Step,
    open_calls,
    random_case,
)
from tests.properties.history_judge import COUNTER, Judge, Snapshot


def run_seeds(first: int, count: int, format: Format, plugin: str) -> Counter[str]:  # noqa: A002
    """Judge `count` cases from this seed on and return how often each thing happened in them."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            seen += run_case(random_case(Random(seed), format, plugin))
        except Exception as error:
            raise AssertionError(f"seed {seed}, {format}, {plugin}: {error}") from error
        seen["histories"] += 1
    return seen


def run_case(case: Case) -> Counter[str]:
    """Judge one case from its first message to its last collection."""
    session = Session(
        case.limit,
        config=case.config(),
        plugin=case.strategy(),
        store="memory:",
        prices="none",
        counter=COUNTER,
        clock=Clock(),
        model="claude-opus-4-6",  # the judge knows no binding of thinking; tests/sdk/test_thinking does
    )
    if case.beside:
        session.set_system(SYSTEM_TEXT)
        session.set_tools([TOOL_SCHEMA])
    judge = Judge(session, case.format, beside=case.beside)
    for step in case.steps:
        judge.took(step.chunk, session.extend(step.chunk, case.format))
        _pin(session, judge, step)
        _collect(session, judge, step)
        _bring_back(session, judge, step)
    judge.conserved()
    return judge.seen


def _pin(session: Session, judge: Judge, step: Step) -> None:
    ids = [message.message_id for message in session.history]
    if step.pin is not None:
        chosen = ids[int(step.pin * len(ids))]
        session.pin(chosen)
        judge.kept.add(chosen)


def _collect(session: Session, judge: Judge, step: Step) -> None:
    if step.how == "send":
        _send(session, judge)
        return
    run = session.collect if step.how == "collect" else session.relieve
    before = Snapshot(session)
    judge.collected(before, run(step.target), _target(session, step))
    if not judge.hold_ended():
        settled = Snapshot(session)
        judge.repeated(settled, run(step.target))
    if step.undoes and Snapshot(session).collections > before.collections:
        judge.undone(before)


def _send(session: Session, judge: Judge) -> None:
    """Ask for the view to send, twice: what is due happens once, or there is a typed refusal."""
    before, known = Snapshot(session), len(session.gc_history)
    if open_calls(before.data()):
        return
    try:
        sent = session.messages()
    except ContextOverflowError:
        judge.guarded(before)
        judge.seen["overflows"] += 1
        return
    settled = Snapshot(session)
    judge.sent(settled, sent)
    news = session.gc_history[known:]
    if _by_guard(session, news) or (not news and settled.rows != before.rows):
        judge.guarded(before)
        return
    for result in news:
        judge.collected(before, result, _target(session))
    if not judge.hold_ended():
        session.messages()
        judge.repeated(settled, None)


def _by_guard(session: Session, news: list[GCResult]) -> bool:
    """Tell whether more than one plain collection happened: a recovery, or a text that came back."""
    reasons = {result.trigger_reason for result in news}
    total = session.budget.total_tokens()
    return (
        len(news) > 1
        or GCTriggerReason.CONTEXT_LIMIT in reasons
        or any(result.tokens_after != total for result in news)
    )


def _target(session: Session, step: Step | None = None) -> int:
    if step is not None and step.target is not None:
        return step.target
    return int(session.context_limit * session.config.target_percent / 100)


def _bring_back(session: Session, judge: Judge, step: Step) -> None:
    away = judge.stashed() if step.recalls else []
    if away:
        judge.recalled(away[len(away) // 2], session.config.recall_hold_collections)
