"""Checkpoint triggers: what makes a checkpoint due, and that each cause counts once."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.config import GCConfig
from ctxgc.errors import InputError
from ctxgc.guard import CheckpointTriggers, ContextMetrics, Progress, should_create_checkpoint
from tests.fakes import NOW, still
from tests.requirements import requirement

ROOMY = ContextMetrics(context_size=10, context_limit=100)


def at(percent: int) -> ContextMetrics:
    return ContextMetrics(context_size=percent, context_limit=100)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


@requirement("S4.triggers.context-size")
def test_more_than_80_percent_triggers_and_80_does_not() -> None:
    assert should_create_checkpoint(Progress(), at(81), NOW) == (True, ["context_size_threshold"])
    assert should_create_checkpoint(Progress(), at(80), NOW) == (False, [])


@requirement("S4.triggers.phase")
def test_a_changed_phase_triggers() -> None:
    changed = Progress(phase_changed=True)
    assert should_create_checkpoint(changed, ROOMY, NOW) == (True, ["phase_transition"])


@requirement("S4.triggers.milestone")
@pytest.mark.parametrize("done", range(12))
def test_every_fifth_completed_task_triggers_but_none_at_all_does_not(done: int) -> None:
    """S4's remainder was zero at zero tasks."""
    due, names = should_create_checkpoint(Progress(tasks_completed=done), ROOMY, NOW)
    assert (due, names) == ((True, ["task_milestone"]) if done in (5, 10) else (False, []))


def test_a_milestone_does_not_trigger_again_between_tasks() -> None:
    """S4's remainder stayed zero until the next task was completed."""
    seen = Progress(tasks_completed=5, tasks_seen=5)
    assert should_create_checkpoint(seen, ROOMY, NOW) == (False, [])


def test_a_milestone_that_was_jumped_over_triggers() -> None:
    jumped = Progress(tasks_completed=6, tasks_seen=4)
    assert should_create_checkpoint(jumped, ROOMY, NOW) == (True, ["task_milestone"])


@requirement("S4.triggers.risky-operation")
@pytest.mark.parametrize("operation", ["major_refactor", "large_merge"])
def test_a_risky_operation_ahead_triggers(operation: str) -> None:
    ahead = Progress(next_operation=operation)
    assert should_create_checkpoint(ahead, ROOMY, NOW) == (True, ["risky_operation"])


def test_which_operations_are_risky_is_configuration() -> None:
    ahead = Progress(next_operation="drop_table")
    assert should_create_checkpoint(ahead, ROOMY, NOW) == (False, [])
    risky = should_create_checkpoint(ahead, ROOMY, NOW, risky_operations={"drop_table"})
    assert risky == (True, ["risky_operation"])


@requirement("S4.triggers.time")
def test_more_than_30_minutes_since_the_last_checkpoint_trigger() -> None:
    ask = should_create_checkpoint
    assert ask(Progress(), ROOMY, NOW, NOW - minutes(30)) == (False, [])
    assert ask(Progress(), ROOMY, NOW, NOW - minutes(30.1)) == (True, ["time_interval"])
    assert ask(Progress(), ROOMY, NOW, None) == (False, [])


@requirement("S4.triggers.answer")
def test_the_answer_names_all_triggers() -> None:
    everything = Progress(phase_changed=True, tasks_completed=5, next_operation="large_merge")
    assert should_create_checkpoint(everything, at(90), NOW, NOW - minutes(60)) == (
        True,
        [
            "context_size_threshold",
            "phase_transition",
            "task_milestone",
            "risky_operation",
            "time_interval",
        ],
    )


def test_any_object_with_the_names_of_the_seed_is_asked() -> None:
    context = SimpleNamespace(
        phase_changed=True, tasks_completed=4, next_operation=None, owner="me"
    )
    metrics = SimpleNamespace(context_size=81, context_limit=100)
    expected = (True, ["context_size_threshold", "phase_transition"])
    assert should_create_checkpoint(context, metrics) == expected
    assert should_create_checkpoint(vars(context), metrics) == expected


def test_the_marks_are_configuration() -> None:
    config = GCConfig(
        checkpoint_percent=50, checkpoint_every_tasks=2, checkpoint_interval_seconds=60
    )
    progress = Progress(tasks_completed=2)
    due, names = should_create_checkpoint(progress, at(51), NOW, NOW - minutes(2), config=config)
    assert names == ["context_size_threshold", "task_milestone", "time_interval"]
    assert due


def test_wrong_values_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="tasks_completed"):
        Progress(tasks_completed=-1)
    with pytest.raises(InputError, match="last"):
        should_create_checkpoint(Progress(), ROOMY, NOW, NOW.replace(tzinfo=None))


def test_a_trigger_stays_due_until_a_checkpoint_was_made() -> None:
    triggers = CheckpointTriggers(clock=still())
    assert triggers.check(ROOMY, tasks_completed=5) == (True, ["task_milestone"])
    assert triggers.check(ROOMY, tasks_completed=6) == (True, ["task_milestone"])
    triggers.made()
    assert triggers.check(ROOMY, tasks_completed=7) == (False, [])


def test_a_full_context_makes_one_checkpoint_until_it_was_clearly_below_the_mark() -> None:
    triggers = CheckpointTriggers(clock=still())
    due = []
    for percent in (81, 82, 79, 81, 74, 81):
        is_due, _ = triggers.check(at(percent))
        due.append(is_due)
        triggers.made()
    assert due == [True, False, False, False, False, True]


def test_the_first_phase_is_no_change_and_a_left_out_one_neither() -> None:
    triggers = CheckpointTriggers(clock=still())
    answers = [triggers.check(ROOMY, phase=phase)[0] for phase in ("plan", None, "plan", "build")]
    assert answers == [False, False, False, True]


def test_a_risky_operation_counts_each_time_it_is_announced() -> None:
    triggers = CheckpointTriggers(clock=still())
    answers = []
    for operation in ("large_merge", "large_merge", None, "large_merge"):
        answers.append(triggers.check(ROOMY, next_operation=operation)[0])
        triggers.made()
    assert answers == [True, False, False, True]


def test_the_interval_runs_from_the_start_and_then_from_the_last_checkpoint() -> None:
    clock = still()
    triggers = CheckpointTriggers(clock=clock)
    clock.wait(minutes=31)
    assert triggers.check(ROOMY) == (True, ["time_interval"])
    triggers.made(NOW + minutes(20))
    assert triggers.check(ROOMY) == (False, [])
    clock.wait(minutes=20)
    assert triggers.check(ROOMY) == (True, ["time_interval"])


@given(st.lists(st.integers(0, 3)), st.integers(1, 7))
def test_each_milestone_makes_exactly_one_checkpoint(steps: list[int], every: int) -> None:
    triggers = CheckpointTriggers(GCConfig(checkpoint_every_tasks=every), clock=still())
    done = made = passed = 0
    for step in steps:
        passed += (done + step) // every > done // every
        done += step
        for _ in range(2):
            due, _ = triggers.check(ROOMY, tasks_completed=done)
            if due:
                made += 1
                triggers.made()
    assert made == passed
