"""S4 "Automatic Checkpoint Triggers", block 7: the same answers from ours.

Fault of the seed: `tasks_completed % 5 == 0` holds before the first task and until the next one; ours asks whether a
fifth task was completed since the last look.
"""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from ctxgc import guard

NOW = datetime(2026, 1, 2, tzinfo=UTC)
last = NOW


def time_since_last_checkpoint():
    return (NOW - last).total_seconds()


# -- the block


def should_create_checkpoint(context, metrics):
    triggers = []

    # Context size approaching limit
    if metrics.context_size / metrics.context_limit > 0.80:
        triggers.append("context_size_threshold")

    # Major phase transition
    if context.phase_changed:
        triggers.append("phase_transition")

    # Significant progress
    if context.tasks_completed % 5 == 0:
        triggers.append("task_milestone")

    # Before risky operation
    if context.next_operation in ["major_refactor", "large_merge"]:
        triggers.append("risky_operation")

    # Time-based (every 30 minutes)
    if time_since_last_checkpoint() > 1800:
        triggers.append("time_interval")

    return len(triggers) > 0, triggers


# -- ours: any object with these names, and the time of the last checkpoint

names = ("phase_changed", "tasks_completed", "next_operation")
for values in ((False, 1, None), (True, 5, "large_merge"), (False, 7, "major_refactor"), (True, 3, "x")):
    context = SimpleNamespace(**dict(zip(names, values)))
    for size, minutes in ((10, 5), (80, 30), (81, 31)):
        metrics = SimpleNamespace(context_size=size, context_limit=100)
        last = NOW - timedelta(minutes=minutes)
        theirs = should_create_checkpoint(context, metrics)
        assert guard.should_create_checkpoint(context, metrics, NOW, last) == theirs, (context, metrics)

nothing_done = SimpleNamespace(phase_changed=False, tasks_completed=0, next_operation=None)
roomy = SimpleNamespace(context_size=1, context_limit=100)
last = NOW
assert should_create_checkpoint(nothing_done, roomy) == (True, ["task_milestone"])
assert guard.should_create_checkpoint(nothing_done, roomy) == (False, [])
