"""When to make a checkpoint: five triggers, each with its name.

`should_create_checkpoint` is a pure question about one moment. `CheckpointTriggers` remembers what it
saw, so that each cause counts once, and a trigger stays due until a checkpoint was really made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

import msgspec

from ctxgc.config import GCConfig
from ctxgc.core import checked_time, utc_now
from ctxgc.errors import InputError
from ctxgc.guard.monitor import percent_of

CONTEXT_SIZE = "context_size_threshold"
PHASE = "phase_transition"
MILESTONE = "task_milestone"
RISK = "risky_operation"
TIME = "time_interval"
TRIGGERS: tuple[str, ...] = (CONTEXT_SIZE, PHASE, MILESTONE, RISK, TIME)

RISKY_OPERATIONS: frozenset[str] = frozenset({"major_refactor", "large_merge"})


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the work has come.

    `tasks_seen` is how many tasks were complete at the last look; None says that the last of
    `tasks_completed` was completed just now.
    """

    phase_changed: bool = False
    tasks_completed: int = 0
    tasks_seen: int | None = None
    next_operation: str | None = None

    def __post_init__(self) -> None:
        for field in ("tasks_completed", "tasks_seen"):
            value = getattr(self, field)
            if value is not None and value < 0:
                raise InputError(f"{field} cannot be {value}", hint="zero or more", field=field)


class ContextMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the context and of the window, in tokens."""

    context_size: int
    context_limit: int

    @property
    def percent(self) -> float:
        """The share of the window that is used."""
        return percent_of(self.context_size, self.context_limit)


def should_create_checkpoint(
    progress: Progress,
    metrics: ContextMetrics,
    now: datetime,
    last: datetime | None = None,
    *,
    config: GCConfig | None = None,
    risky_operations: Collection[str] = RISKY_OPERATIONS,
) -> tuple[bool, list[str]]:
    """Return whether to make a checkpoint now, and the names of all triggers that say so.

    `last` is the time of the last checkpoint; without one no interval has passed.
    """
    config = config if config is not None else GCConfig()
    reasons = {
        CONTEXT_SIZE: metrics.percent > config.checkpoint_percent,
        PHASE: progress.phase_changed,
        MILESTONE: _passed_milestone(progress, config.checkpoint_every_tasks),
        RISK: progress.next_operation in risky_operations,
        TIME: _waited(now, last) > config.checkpoint_interval_seconds,
    }
    names = [name for name in TRIGGERS if reasons[name]]
    return bool(names), names


def _passed_milestone(progress: Progress, every: int) -> bool:
    done = progress.tasks_completed
    seen = max(0, done - 1) if progress.tasks_seen is None else progress.tasks_seen
    return done // every > seen // every


def _waited(now: datetime, last: datetime | None) -> float:
    if last is None:
        return 0.0
    return (checked_time("now", now) - checked_time("last", last)).total_seconds()


class CheckpointTriggers:
    """Watches a session and says when a checkpoint is due.

    Args:
        config: the marks and intervals.
        risky_operations: the operations before which a checkpoint is made.
        clock: gives the present time; the first interval starts when this object is made.
    """

    def __init__(
        self,
        config: GCConfig | None = None,
        *,
        risky_operations: Collection[str] = RISKY_OPERATIONS,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.config = config if config is not None else GCConfig()
        self.risky_operations = frozenset(risky_operations)
        self._clock = clock
        self._last = clock()
        self._due: set[str] = set()
        self._above = False
        self._phase: str | None = None
        self._tasks = 0
        self._operation: str | None = None

    def check(
        self,
        metrics: ContextMetrics,
        *,
        phase: str | None = None,
        tasks_completed: int | None = None,
        next_operation: str | None = None,
    ) -> tuple[bool, list[str]]:
        """Return whether a checkpoint is due, and all its triggers since the last one.

        What is left out has not changed; a risky operation counts once each time it is announced.
        """
        done = self._tasks if tasks_completed is None else tasks_completed
        progress = Progress(
            phase_changed=None not in (phase, self._phase) and phase != self._phase,
            tasks_completed=done,
            tasks_seen=self._tasks,
            next_operation=None if next_operation == self._operation else next_operation,
        )
        _, names = should_create_checkpoint(
            progress, metrics, self._clock(), self._last,
            config=self.config, risky_operations=self.risky_operations,
        )  # fmt: skip
        self._due |= {name for name in names if name != CONTEXT_SIZE or not self._above}
        self._watch_size(metrics.percent)
        self._phase = self._phase if phase is None else phase
        self._tasks, self._operation = done, next_operation
        due = [name for name in TRIGGERS if name in self._due]
        return bool(due), due

    def made(self, at: datetime | None = None) -> None:
        """Note that a checkpoint was made: nothing is due, and a new interval starts."""
        self._last = self._clock() if at is None else checked_time("at", at)
        self._due.clear()

    def _watch_size(self, percent: float) -> None:
        """A size counts again once it has been clearly below its mark."""
        mark = self.config.checkpoint_percent
        if percent > mark:
            self._above = True
        elif percent < mark - self.config.zone_leave_points:
            self._above = False
