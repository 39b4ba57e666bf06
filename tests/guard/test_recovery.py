"""Recovery: the paths over S4's chart with what is done on them, and the promises about retries."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import ContextOverflowError, InputError
from ctxgc.guard import Alert, ContextMonitor, Recoverable, Recovery, RecoveryReport, State
from ctxgc.guard.recovery import TRANSITIONS, Action
from ctxgc.wire import Overflow
from tests.guard.scripted import Scripted
from tests.requirements import requirement

S = State
START = (S.CALL_REQUESTED, S.CHECK_SIZE, S.COMPARE_SIZE)
EMERGENCY = (*START, S.CRITICAL_ZONE, S.EMERGENCY_CHECKPOINT, S.CAN_PRUNE_SAFELY)
PRUNED = (*EMERGENCY, S.PRUNE_NOW, S.PRUNING_SUCCESSFUL)
OVERFLOW = (*EMERGENCY, S.OVERFLOW, S.RECOVERY_POSSIBLE)
RECOVERED = (*OVERFLOW, S.LOAD_CHECKPOINT, S.AGGRESSIVE_PRUNE)
TOO_LONG = Overflow(kind="tokens")


class RefusedError(Exception):
    """A provider's refusal of a context as too long."""


def walk(**fields: Any) -> tuple[RecoveryReport, Scripted]:
    subject = Scripted(**fields)
    return Recovery(subject).before_call(), subject


def fatal(**fields: Any) -> tuple[list[str], ContextOverflowError]:
    with pytest.raises(ContextOverflowError) as caught:
        walk(**fields)
    return caught.value.details["report"]["path"], caught.value


def names(*states: State) -> list[str]:
    return [state.name for state in states]


def test_a_session_of_numbers_is_recoverable() -> None:
    subject: Recoverable = Scripted(10)
    assert subject.size() == 10


# -- the arrows -------------------------------------------------------------------------------------


@requirement("S4.flow.check-before-call", "S4.flow.safe-executes")
def test_a_safe_context_is_checked_and_the_call_runs() -> None:
    report, subject = walk(now=69)
    assert report == RecoveryReport(
        path=(*START, S.SAFE_ZONE, S.EXECUTE), actions=(), size_before=69, size_after=69, limit=100
    )
    assert subject.asked == []


@requirement("S4.flow.warning-logs")
def test_a_warning_is_logged_once_for_each_entry_and_the_call_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recovery = Recovery(Scripted(now=70))
    with caplog.at_level(logging.WARNING, "ctxgc"):
        reports = [recovery.before_call() for _ in range(3)]
    assert {report.path for report in reports} == {
        (*START, S.WARNING_ZONE, S.LOG_WARNING, S.EXECUTE)
    }
    assert [record.getMessage() for record in caplog.records] == [
        "ctxgc: the context is at 70% of its limit"
    ]
    assert reports[1].actions == (Action("warning", False, "said before"),)


@requirement("S4.flow.danger-checkpoints", "S4.flow.danger-plans")
def test_danger_makes_a_checkpoint_and_a_plan_and_the_call_runs() -> None:
    report, subject = walk(now=85)
    danger = (S.DANGER_ZONE, S.CREATE_CHECKPOINT, S.PLAN_PRUNING, S.EXECUTE)
    assert report.path == (*START, *danger)
    assert (subject.asked, subject.now) == (["checkpoint", "plan"], 85)


def test_one_checkpoint_is_made_for_each_time_in_danger() -> None:
    subject = Scripted(now=85, fails=frozenset({"checkpoint"}))
    recovery = Recovery(subject)
    for now, fails in ((85, True), (86, False), (87, False), (60, False), (85, False)):
        subject.now, subject.fails = now, frozenset({"checkpoint"} if fails else ())
        recovery.before_call()
    assert subject.asked.count("checkpoint") == 3


@requirement(
    "S4.flow.critical-checkpoints", "S4.flow.prunes-now", "S4.flow.validates",
    "S4.recovery.detect", "S4.recovery.emergency-checkpoint", "S4.recovery.validate",
    "S4.recovery.resume",
)  # fmt: skip
def test_critical_makes_an_emergency_checkpoint_prunes_validates_and_the_call_runs() -> None:
    report, subject = walk(now=95)
    assert report.path == (*PRUNED, S.EXECUTE)
    assert subject.asked == ["emergency", "plan", "prune", "validate"]
    assert (report.size_before, report.size_after) == (95, 70)


@requirement("S4.flow.falls-back")
@pytest.mark.parametrize(
    "trouble",
    [
        {"fails": frozenset({"prune"})},
        {"raises": frozenset({"prune"})},
        {"pruned_to": 95},
        {"pruned_to": None},
    ],
)
def test_a_failed_pruning_falls_back_to_the_minimal_context(trouble: dict[str, Any]) -> None:
    report, subject = walk(now=97, **trouble)
    assert report.path == (*PRUNED, S.FALLBACK_MINIMAL, S.EXECUTE)
    assert subject.now == 30


def test_a_pruning_that_lost_something_essential_falls_back_too() -> None:
    subject = Scripted(now=97)
    answers = iter([False, True])
    subject.validate = lambda: next(answers)  # type: ignore[method-assign]
    assert Recovery(subject).before_call().path == (*PRUNED, S.FALLBACK_MINIMAL, S.EXECUTE)


@requirement("S4.flow.overflow", "S4.flow.loads-checkpoint", "S4.flow.aggressive-prune")
@requirement("S4.flow.resumes", "S4.recovery.if-failed")
def test_an_overflow_is_recovered_from_the_last_checkpoint_by_aggressive_pruning() -> None:
    report, subject = walk(now=110, must_stay=95)
    assert report.path == (*RECOVERED, S.RESUME)
    assert subject.asked == [
        "emergency", "plan", "look", "load", "aggressive", "validate", "resume"
    ]  # fmt: skip
    assert (report.state, report.size_after) == (S.RESUME, 20)


def test_a_minimal_context_that_does_not_fit_is_an_overflow() -> None:
    report, _ = walk(now=110, fails=frozenset({"prune"}), minimum=101)
    tail = (S.FALLBACK_MINIMAL, *OVERFLOW[-2:], *RECOVERED[-2:], S.RESUME)
    assert report.path == (*PRUNED, *tail)


@requirement("S4.flow.fatal")
def test_without_a_checkpoint_an_overflow_is_fatal_and_names_what_does_not_fit() -> None:
    path, error = fatal(now=110, must_stay=105, stored_minimum=None)
    assert path == names(*OVERFLOW, S.FATAL, S.STOPPED)
    assert (error.details["size"], error.details["limit"]) == (110, 100)
    assert error.details["parts"] == [
        {"name": "system prompt", "tokens": 105},
        {"name": "last turn", "tokens": 5},
    ]


def test_a_tight_context_that_cannot_be_recovered_but_fits_is_sent() -> None:
    report, _ = walk(now=97, must_stay=97, stored_minimum=None)
    assert report.path == (*OVERFLOW, S.EXECUTE)
    broken = {"now": 97, "must_stay": 97, "stored_minimum": None, "fails": frozenset({"validate"})}
    assert fatal(**broken)[0] == names(*OVERFLOW, S.FATAL, S.STOPPED)


def test_a_checkpoint_that_cannot_be_loaded_is_fatal() -> None:
    path, _ = fatal(now=110, must_stay=105, raises=frozenset({"load"}))
    assert path == names(*OVERFLOW, S.LOAD_CHECKPOINT, S.FATAL, S.STOPPED)


@pytest.mark.parametrize("trouble", [{"aggressive_to": 101}, {"fails": frozenset({"aggressive"})}])
def test_aggressive_pruning_that_does_not_suffice_is_fatal(trouble: dict[str, Any]) -> None:
    path, _ = fatal(now=110, must_stay=105, **trouble)
    assert path == names(*RECOVERED, S.FATAL, S.STOPPED)


def test_a_failed_emergency_checkpoint_is_reported_and_does_not_stop_the_relief() -> None:
    report, _ = walk(now=97, raises=frozenset({"emergency"}))
    assert report.state is S.EXECUTE
    assert report.actions[0] == Action("emergency checkpoint", False, "emergency failed")


def test_the_call_completes_from_both_ready_states() -> None:
    executed, _ = walk(now=10)
    resumed, _ = walk(now=110, must_stay=95)
    ends = [report.completed().path[-2:] for report in (executed, resumed)]
    assert ends == [(S.EXECUTE, S.CALL_COMPLETE), (S.RESUME, S.CALL_COMPLETE)]


def test_the_monitor_sees_every_call() -> None:
    sent: list[Alert] = []
    monitor = ContextMonitor(on_alert=sent.append)
    recovery = Recovery(Scripted(now=90), monitor=monitor)
    recovery.before_call()
    recovery.before_call()
    assert ([alert.level for alert in sent], len(monitor.history)) == (["DANGER"], 2)


# -- refusals and retries ---------------------------------------------------------------------------


def provider(subject: Scripted, window: int) -> Any:
    """Return a call that a provider with this window answers, and the sizes it saw."""
    seen: list[int] = []

    def send() -> str:
        seen.append(subject.now)
        if subject.now > window:
            raise RefusedError
        return "answer"

    return send, seen


def refusal(error: Exception) -> Overflow | None:
    return TOO_LONG if isinstance(error, RefusedError) else None


def test_an_answer_needs_no_retry() -> None:
    subject = Scripted(now=50)
    send, seen = provider(subject, 100)
    answer, reports = Recovery(subject).call(send, refusal)
    assert (answer, seen) == ("answer", [50])
    assert [report.state for report in reports] == [S.CALL_COMPLETE]


def test_a_refused_call_is_retried_strictly_smaller() -> None:
    subject = Scripted(now=80, must_stay=5)
    send, seen = provider(subject, 40)
    answer, reports = Recovery(subject).call(send, refusal)
    assert answer == "answer"
    assert seen == [80, 55, 37]
    assert [report.path[0] for report in reports] == [
        S.CALL_REQUESTED,
        S.CRITICAL_ZONE,
        S.CRITICAL_ZONE,
    ]
    assert reports[-1].state is S.CALL_COMPLETE


def test_numbers_in_a_refusal_set_the_target() -> None:
    subject = Scripted(now=80)
    recovery = Recovery(subject)
    recovery.before_call()
    report = recovery.after_refusal(Overflow(kind="tokens", limit=1_000, used=2_000))
    assert (report.limit, report.size_after) == (40, 28)


def test_after_three_refused_retries_it_is_over() -> None:
    subject = Scripted(now=80, must_stay=1)
    send, seen = provider(subject, 0)
    with pytest.raises(ContextOverflowError, match="3 retries were refused") as caught:
        Recovery(subject).call(send, refusal)
    assert isinstance(caught.value.__cause__, RefusedError)
    assert len(seen) == 4
    assert seen == sorted(set(seen), reverse=True)


def test_a_context_that_cannot_get_smaller_is_not_sent_again() -> None:
    stuck = Scripted(
        now=80, must_stay=80, minimum=80, stored_minimum=80, loaded=80, aggressive_to=80
    )
    send, seen = provider(stuck, 0)
    with pytest.raises(ContextOverflowError, match="does not fit a window of 79"):
        Recovery(stuck).call(send, refusal)
    assert seen == [80]


def test_where_nothing_may_leave_it_is_watched_checkpointed_and_not_pruned() -> None:
    subject = Scripted(now=97)
    recovery = Recovery(subject)
    report = recovery.before_call("switched off")
    assert (report.state, report.size_after) == (S.EXECUTE, 97)
    recovery.before_call("switched off")
    assert subject.asked == ["emergency"]
    with pytest.raises(ContextOverflowError, match="switched off"):
        recovery.after_refusal(TOO_LONG, "switched off")
    subject.now = 101
    with pytest.raises(ContextOverflowError, match="switched off"):
        recovery.before_call("switched off")
    assert subject.now == 101


def test_what_failed_is_the_cause_when_what_must_stay_would_fit() -> None:
    raising = Scripted(now=120, raises=frozenset({"prune", "minimal", "load"}))
    with pytest.raises(ContextOverflowError) as caught:
        Recovery(raising).before_call()
    causes = "prune: prune failed; minimal context: minimal failed; load checkpoint: load failed"
    assert caught.value.details["cause"] == causes


def test_an_empty_context_that_is_refused_is_not_sent_again() -> None:
    recovery = Recovery(Scripted(now=0))
    recovery.before_call()
    with pytest.raises(ContextOverflowError, match="an empty context was refused"):
        recovery.after_refusal(TOO_LONG)


def test_any_other_error_is_raised_on() -> None:
    def send() -> str:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        Recovery(Scripted(now=10)).call(send, refusal)


def test_a_refusal_before_any_call_is_refused() -> None:
    with pytest.raises(InputError, match="nothing was sent"):
        Recovery(Scripted(now=10)).after_refusal(TOO_LONG)


# -- promises ---------------------------------------------------------------------------------------

SIZES = st.integers(0, 150)
METHODS = ["checkpoint", "emergency", "prune", "validate", "minimal", "load", "aggressive"]
SUBJECTS = st.builds(
    Scripted,
    now=SIZES,
    must_stay=SIZES,
    pruned_to=st.none() | SIZES,
    minimum=st.none() | SIZES,
    stored_minimum=st.none() | SIZES,
    loaded=st.none() | SIZES,
    aggressive_to=st.none() | SIZES,
    fails=st.frozensets(st.sampled_from(METHODS), max_size=3),
    raises=st.frozensets(st.sampled_from([*METHODS, "plan", "look"]), max_size=3),
)


def follows_arrows(path: list[str]) -> bool:
    arrows = {(arrow.source.name, arrow.target.name) for arrow in TRANSITIONS}
    return all(step in arrows for step in pairwise(path))


@given(SUBJECTS)
def test_every_walk_ends_ready_within_the_limit_or_in_a_typed_error(subject: Scripted) -> None:
    valid = not {"validate"} & (subject.fails | subject.raises)
    try:
        report = Recovery(subject).before_call()
    except ContextOverflowError as error:
        path = error.details["report"]["path"]
    else:
        path = names(*report.path)
        assert report.size_after == subject.now <= subject.limit
        assert valid or report.path[3] is not S.CRITICAL_ZONE
    assert follows_arrows(path)
    assert path[-1] in ("EXECUTE", "RESUME", "STOPPED")


@given(SUBJECTS, st.integers(-1, 150))
def test_there_are_at_most_three_retries_and_each_is_strictly_smaller(
    subject: Scripted, window: int
) -> None:
    send, seen = provider(subject, window)
    try:
        _, reports = Recovery(subject).call(send, refusal)
    except ContextOverflowError:
        assert all(size > window for size in seen)
    else:
        assert [report.size_after for report in reports] == seen
        assert seen[-1] <= window
    assert len(seen) <= 4
    assert seen == sorted(set(seen), reverse=True)
