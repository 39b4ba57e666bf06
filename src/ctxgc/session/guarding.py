"""The guard of a session: checkpoints when they are due, and a request that always fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ctxgc.core.message import Message
from ctxgc.guard import (
    Alert,
    Checkpoint,
    CheckpointTriggers,
    ContextMetrics,
    ContextMonitor,
    Recovery,
    RecoveryReport,
)
from ctxgc.guard.retention import CheckpointInfo
from ctxgc.session.checkpoints import Restored, make_checkpoint, restore_checkpoint, shelf_of
from ctxgc.session.facts import SessionFacts
from ctxgc.session.faults import note_faults
from ctxgc.session.mentioned import Mentioned
from ctxgc.session.recovering import RecoverableSession
from ctxgc.session.stash_gc import collect_stash
from ctxgc.session.workings import Workings
from ctxgc.wire import Overflow


class Guard:
    """Watches every request of one session."""

    def __init__(self, workings: Workings) -> None:
        self._w = workings
        self.monitor = ContextMonitor(
            workings.config, on_alert=self._alert, zone=workings.zone, clock=workings.clock
        )
        self.triggers = CheckpointTriggers(workings.config, clock=workings.clock)
        self._subject = RecoverableSession(workings)
        self.recovery = Recovery(self._subject, workings.config, self.monitor)
        self.mentioned = Mentioned(workings)
        self._collections = workings.collections

    def before_request(self) -> RecoveryReport | None:
        """Bring back what was named, make a checkpoint that is due, and make the view fit.

        Whoever collects by hand, or never, is left alone.

        Raises:
            ContextOverflowError: what must stay does not fit; `details` names the parts.
        """
        if not self._w.config.auto_trigger or self._w.plugin.name == "gc_none":
            return None
        self.mentioned.bring_back()
        self.checkpoint_if_due()
        self._collect_stash_if_due()
        return self._told(self.recovery.before_call())

    def after_refusal(self, overflow: Overflow) -> RecoveryReport:
        """Make the view strictly smaller, because the provider refused it.

        Raises:
            ContextOverflowError: it cannot get smaller, or three retries were refused.
        """
        return self._told(self.recovery.after_refusal(overflow))

    def _told(self, report: RecoveryReport) -> RecoveryReport:
        self._subject.tell_left(report.limit)
        return report

    def checkpoint_if_due(self, **progress: Any) -> Checkpoint | None:
        """Make a checkpoint when one of S4's triggers says so."""
        budget = self._w.books.budget
        metrics = ContextMetrics(
            context_size=budget.total_tokens(), context_limit=budget.context_limit
        )
        due, why = self.triggers.check(metrics, **progress)
        if not due:
            return None
        checkpoint = make_checkpoint(self._w, triggers=why)
        self.triggers.made(checkpoint.timestamp)
        return checkpoint

    def _collect_stash_if_due(self) -> None:
        """Keep the stash within its limits, after each collection that added to it."""
        config, done = self._w.config, self._w.collections
        limits = config.stash_max_age_seconds, config.stash_max_bytes
        if limits != (None, None) and done != self._collections:
            collect_stash(self._w, max_age_seconds=limits[0], max_bytes=limits[1])
        self._collections = done

    def _alert(self, alert: Alert) -> None:
        self._w.events.emit("alert", **alert.to_dict())


class SessionGuard(SessionFacts):
    """What a session offers against overflow and loss."""

    _guard: Guard

    def checkpoint(
        self,
        label: str = "",
        *,
        task_queue: Sequence[Any] = (),
        system_state: Mapping[str, Any] | None = None,
        files: Iterable[str] | None = None,
        triggers: Sequence[str] = (),
    ) -> Checkpoint:
        """Keep the view, the pins and the state as they are now, durably, and return the checkpoint.

        `files` names those whose checksums are kept; by default the files worked on last. `triggers`
        says what caused it.
        """
        checkpoint = make_checkpoint(
            self._w, label, triggers=triggers, task_queue=task_queue, system_state=system_state,
            files=files,
        )  # fmt: skip
        self._guard.triggers.made(checkpoint.timestamp)
        return checkpoint

    def restore(self, checkpoint_id: str) -> Restored:
        """Make the view what it was at a checkpoint, byte for byte; what came in since is stashed.

        Raises:
            CheckpointError: there is no such checkpoint, or it does not verify.
        """
        return restore_checkpoint(self._w, shelf_of(self._w).get(checkpoint_id))

    def checkpoints(self) -> tuple[CheckpointInfo, ...]:
        """Return the checkpoints of this session, oldest first."""
        return shelf_of(self._w).list()

    def progress(
        self,
        *,
        phase: str | None = None,
        tasks_completed: int | None = None,
        next_operation: str | None = None,
    ) -> Checkpoint | None:
        """Tell how the work goes; a new phase, every fifth task or a risky step makes a checkpoint."""
        return self._guard.checkpoint_if_due(
            phase=phase, tasks_completed=tasks_completed, next_operation=next_operation
        )

    def recover(self, overflow: Overflow) -> RecoveryReport:
        """Make the view strictly smaller, because the provider refused what `messages()` gave.

        Raises:
            ContextOverflowError: it cannot get smaller, or three retries were refused.
        """
        return self._guard.after_refusal(overflow)

    def collect_stash(
        self, *, max_age_seconds: float | None = None, max_bytes: int | None = None
    ) -> list[str]:
        """Delete stashed segments that are too old or too many, never under a live handle."""
        config = self._w.config
        age = config.stash_max_age_seconds if max_age_seconds is None else max_age_seconds
        size = config.stash_max_bytes if max_bytes is None else max_bytes
        return collect_stash(self._w, max_age_seconds=age, max_bytes=size)

    def note_fault(self, handle: str) -> None:
        """Take note that the model asked for what had left the view: its like stays longer.

        `recall` does that by itself; who answers the model with `read` says so here.

        Raises:
            UnknownHandleError: nothing answers to the handle.
        """
        segment = self._w.stash.find(handle)
        if segment.tier == "stashed":
            note_faults(self._w, [segment], [segment.message_id or ""])

    def recalled(self) -> Message | None:
        """Return the message by which something named came back last; None if there was none."""
        return self._guard.mentioned.last
