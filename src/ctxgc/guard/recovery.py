"""Recovery: walks S4's first chart before a call, and again when the provider refuses it.

    recovery = Recovery(session)
    report = recovery.before_call()         # then send
    report = recovery.after_refusal(overflow)  # the provider said "too long": then send again

What goes out after a refusal is strictly smaller than what was refused; there are at most three
retries. When nothing helps, a ContextOverflowError names what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ctxgc.config import GCConfig
from ctxgc.errors import ContextOverflowError, InputError
from ctxgc.guard.monitor import ContextMonitor
from ctxgc.guard.recoverable import Recoverable, window_after
from ctxgc.guard.states import State
from ctxgc.guard.walk import RecoveryReport, Walk, Walker
from ctxgc.wire.overflow import Overflow

MAX_RETRIES = 3

Answer = TypeVar("Answer")


class Recovery:
    """Guards the calls of one session.

    Args:
        subject: the session.
        config: where the zones start, and where pruning lands.
        monitor: takes a reading before each call and sends the alerts.
    """

    def __init__(
        self,
        subject: Recoverable,
        config: GCConfig | None = None,
        monitor: ContextMonitor | None = None,
    ) -> None:
        config = config if config is not None else GCConfig()
        self.monitor = monitor if monitor is not None else ContextMonitor(config)
        self._subject = subject
        self._walker = Walker(subject, config)
        self._sent: list[int] = []

    def before_call(self) -> RecoveryReport:
        """Make the context ready for a call, and say what was done for that.

        Raises:
            ContextOverflowError: what must stay does not fit; `details` names the parts.
        """
        size, limit = self._subject.size(), self._subject.limit
        alert = self.monitor.check_and_alert(size, limit)
        walk = Walk(before=size, limit=limit, entered=alert is not None)
        self._sent = []
        return self._ready(self._walker.run(walk, State.CALL_REQUESTED))

    def after_refusal(self, overflow: Overflow) -> RecoveryReport:
        """Make the context strictly smaller, because the provider refused what was sent last.

        Raises:
            ContextOverflowError: it cannot get smaller, or three retries were refused.
            InputError: nothing was sent.
        """
        if not self._sent:
            raise InputError("nothing was sent that could be refused", hint="use before_call first")
        refused = self._sent[-1]
        limit = window_after(overflow, refused, self._subject.limit)
        walk = Walk(before=self._subject.size(), limit=limit)
        if len(self._sent) > MAX_RETRIES:
            self._walker.stop(walk, f"{MAX_RETRIES} retries were refused")
        if not refused:
            self._walker.stop(walk, "an empty context was refused")
        return self._ready(self._walker.run(walk, State.CRITICAL_ZONE))

    def call(
        self,
        send: Callable[[], Answer],
        refusal: Callable[[Exception], Overflow | None],
    ) -> tuple[Answer, list[RecoveryReport]]:
        """Send with up to three retries; return the answer and one report for each attempt.

        `refusal` reads from an error that the provider refused the context as too long; any other
        error is raised on.
        """
        reports = [self.before_call()]
        while True:
            try:
                answer = send()
            except Exception as error:
                overflow = refusal(error)
                if overflow is None:
                    raise
                try:
                    reports.append(self.after_refusal(overflow))
                except ContextOverflowError as fatal:
                    raise fatal from error
            else:
                reports[-1] = reports[-1].completed()
                return answer, reports

    def _ready(self, report: RecoveryReport) -> RecoveryReport:
        self._sent.append(report.size_after)
        return report
