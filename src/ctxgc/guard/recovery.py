"""Recovery: S4's first chart as a state machine, run before a call and after each refusal.

    recovery = Recovery(session)
    report = recovery.before_call()         # then send
    report = recovery.after_refusal(overflow)  # the provider said "too long": then send again

What goes out after a refusal is strictly smaller than what was refused; there are at most three
retries. When nothing helps, a ContextOverflowError names what does not fit.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, NoReturn, Protocol, TypeVar

import msgspec

from ctxgc.config import GCConfig
from ctxgc.errors import ContextOverflowError, CtxgcError, InputError
from ctxgc.guard.monitor import ContextMonitor, percent_of, zone_of
from ctxgc.wire import Overflow

_log = logging.getLogger("ctxgc.guard")
_log.addHandler(logging.NullHandler())  # a program without logging must not see it on its stderr

# -- What recovery asks of a session


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What pruning could do, in tokens.

    `must_stay` is what no pruning takes: roots, the last turn, and the reserve for the answer.
    `prunable` is what may leave.
    """

    must_stay: int
    prunable: int


class FixedPart(msgspec.Struct, frozen=True):
    """Something that must stay, and its tokens."""

    name: str
    tokens: int


class Recoverable(Protocol):
    """A session as recovery sees it. Sizes are tokens, all by the same counter.

    A method that cannot do its work returns False or raises a CtxgcError, and has then changed
    nothing. Recovery takes both as "no".
    """

    @property
    def limit(self) -> int:
        """The size of the window."""
        ...

    def size(self) -> int:
        """Return the size of what would be sent now."""
        ...

    def checkpoint(self, *, emergency: bool) -> bool:
        """Make a checkpoint of the present state, durably."""
        ...

    def plan(self, target: int) -> Outlook:
        """Plan the pruning down to a target and return its outlook; nothing changes."""
        ...

    def prune(self, target: int) -> bool:
        """Prune down to a target, or as near as promises allow."""
        ...

    def validate(self) -> bool:
        """Return whether everything essential is still there and the view valid for its provider."""
        ...

    def minimal(self) -> bool:
        """Reduce the view to roots that cannot go and the last turn."""
        ...

    def checkpoint_minimum(self) -> int | None:
        """Return the minimal size of the last checkpoint that verifies; None if there is none."""
        ...

    def load_last_checkpoint(self) -> bool:
        """Go back to the last checkpoint that verifies."""
        ...

    def aggressive(self) -> bool:
        """Keep only the absolute essentials of the view."""
        ...

    def resume(self) -> None:
        """Note that work continues from the loaded checkpoint."""
        ...

    def parts(self) -> Sequence[FixedPart]:
        """Return what must stay, with its tokens."""
        ...


def can_prune_safely(outlook: Outlook, ceiling: int) -> bool:
    """Return whether pruning can help without taking what must stay.

    It can if there is something to prune, and if what must stay is below the ceiling: the size at which
    the critical zone begins.
    """
    return outlook.prunable > 0 and outlook.must_stay < ceiling


def recovery_possible(checkpoint_minimum: int | None, limit: int) -> bool:
    """Return whether a verified checkpoint exists whose minimal context fits the window."""
    return checkpoint_minimum is not None and checkpoint_minimum <= limit


def window_after(overflow: Overflow, size: int, limit: int) -> int:
    """Return the size of the window in our own tokens, as a refusal of the provider shows it.

    The provider may count differently: its `used` is our `size`. A refusal
    without usable numbers shows that the window is smaller than the size it refused.
    """
    if overflow.kind == "tokens" and overflow.limit is not None:
        if overflow.used is not None and overflow.used > overflow.limit:
            return min(limit, size * overflow.limit // overflow.used)
        limit = min(limit, overflow.limit)
    return min(limit, max(0, size - 1))


# -- The chart: its boxes are states, its arrows are transitions


class State(StrEnum):
    """The boxes of the chart."""

    CALL_REQUESTED = "LLM call requested"
    CHECK_SIZE = "Check the context size"
    COMPARE_SIZE = "Size against limit?"
    SAFE_ZONE = "Safe zone"
    WARNING_ZONE = "Warning zone"
    DANGER_ZONE = "Danger zone"
    CRITICAL_ZONE = "Critical zone"
    LOG_WARNING = "Log a warning"
    CREATE_CHECKPOINT = "Create a checkpoint"
    PLAN_PRUNING = "Plan the pruning"
    EMERGENCY_CHECKPOINT = "Emergency checkpoint"
    CAN_PRUNE_SAFELY = "Can prune safely?"
    PRUNE_NOW = "Prune now"
    PRUNING_SUCCESSFUL = "Pruning successful?"
    FALLBACK_MINIMAL = "Fall back to the minimal context"
    OVERFLOW = "Context overflow"
    RECOVERY_POSSIBLE = "Recovery possible?"
    LOAD_CHECKPOINT = "Load the last checkpoint"
    AGGRESSIVE_PRUNE = "Prune aggressively"
    RESUME = "Resume from the checkpoint"
    EXECUTE = "Execute the call"
    FATAL = "Fatal error"
    CALL_COMPLETE = "Call complete"
    STOPPED = "System stopped"


class Transition(msgspec.Struct, frozen=True):
    """One arrow: from a state, on an outcome, to the next state."""

    source: State
    outcome: str
    target: State
    added: bool = False


DONE, YES, NO, TIGHT = "done", "yes", "no", "tight"

_S = State
TRANSITIONS: tuple[Transition, ...] = (
    Transition(_S.CALL_REQUESTED, DONE, _S.CHECK_SIZE),
    Transition(_S.CHECK_SIZE, DONE, _S.COMPARE_SIZE),
    Transition(_S.COMPARE_SIZE, "safe", _S.SAFE_ZONE),
    Transition(_S.COMPARE_SIZE, "warning", _S.WARNING_ZONE),
    Transition(_S.COMPARE_SIZE, "danger", _S.DANGER_ZONE),
    Transition(_S.COMPARE_SIZE, "critical", _S.CRITICAL_ZONE),
    Transition(_S.SAFE_ZONE, DONE, _S.EXECUTE),
    Transition(_S.WARNING_ZONE, DONE, _S.LOG_WARNING),
    Transition(_S.LOG_WARNING, DONE, _S.EXECUTE),
    Transition(_S.DANGER_ZONE, DONE, _S.CREATE_CHECKPOINT),
    Transition(_S.CREATE_CHECKPOINT, DONE, _S.PLAN_PRUNING),
    Transition(_S.PLAN_PRUNING, DONE, _S.EXECUTE),
    Transition(_S.CRITICAL_ZONE, DONE, _S.EMERGENCY_CHECKPOINT),
    Transition(_S.EMERGENCY_CHECKPOINT, DONE, _S.CAN_PRUNE_SAFELY),
    Transition(_S.CAN_PRUNE_SAFELY, YES, _S.PRUNE_NOW),
    Transition(_S.CAN_PRUNE_SAFELY, NO, _S.OVERFLOW),
    Transition(_S.PRUNE_NOW, DONE, _S.PRUNING_SUCCESSFUL),
    Transition(_S.PRUNING_SUCCESSFUL, YES, _S.EXECUTE),
    Transition(_S.PRUNING_SUCCESSFUL, NO, _S.FALLBACK_MINIMAL),
    Transition(_S.FALLBACK_MINIMAL, YES, _S.EXECUTE),
    Transition(_S.FALLBACK_MINIMAL, NO, _S.OVERFLOW, added=True),
    Transition(_S.OVERFLOW, DONE, _S.RECOVERY_POSSIBLE),
    Transition(_S.RECOVERY_POSSIBLE, YES, _S.LOAD_CHECKPOINT),
    Transition(_S.RECOVERY_POSSIBLE, NO, _S.FATAL),
    Transition(_S.RECOVERY_POSSIBLE, TIGHT, _S.EXECUTE, added=True),
    Transition(_S.LOAD_CHECKPOINT, YES, _S.AGGRESSIVE_PRUNE),
    Transition(_S.LOAD_CHECKPOINT, NO, _S.FATAL, added=True),
    Transition(_S.AGGRESSIVE_PRUNE, YES, _S.RESUME),
    Transition(_S.AGGRESSIVE_PRUNE, NO, _S.FATAL, added=True),
    Transition(_S.EXECUTE, DONE, _S.CALL_COMPLETE),
    Transition(_S.RESUME, DONE, _S.CALL_COMPLETE),
    Transition(_S.FATAL, DONE, _S.STOPPED),
)

NEXT: dict[tuple[State, str], State] = {
    (arrow.source, arrow.outcome): arrow.target for arrow in TRANSITIONS
}

READY: frozenset[State] = frozenset({State.EXECUTE, State.RESUME})
"""The states in which the call may be sent."""


def chart() -> str:
    """Return the chart as mermaid text; added arrows are dotted."""
    lines = ["flowchart TD"]
    lines += [f"    {state.name}{_box(state)}" for state in State]
    for arrow in TRANSITIONS:
        line = "-.->" if arrow.added else "-->"
        label = "" if arrow.outcome == DONE else f"|{arrow.outcome}|"
        lines.append(f"    {arrow.source.name} {line}{label} {arrow.target.name}")
    return "\n".join(lines)


def _box(state: State) -> str:
    if state.value.endswith("?"):
        return f"{{{state.value}}}"
    ends = (State.CALL_REQUESTED, State.CALL_COMPLETE, State.STOPPED)
    return f"([{state.value}])" if state in ends else f"[{state.value}]"


# -- The report


class Action(msgspec.Struct, frozen=True):
    """Something that was tried, whether it worked, and a detail to report."""

    name: str
    ok: bool
    detail: str = ""


class RecoveryReport(msgspec.Struct, frozen=True, kw_only=True):
    """The path taken through the chart, what was done, and the sizes before and after."""

    path: tuple[State, ...]
    actions: tuple[Action, ...]
    size_before: int
    size_after: int
    limit: int

    @property
    def state(self) -> State:
        """Where the path ends."""
        return self.path[-1]

    def completed(self) -> RecoveryReport:
        """Return the report once the call is complete."""
        return msgspec.structs.replace(self, path=(*self.path, NEXT[self.state, DONE]))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values, with states by their names."""
        data = dict(msgspec.to_builtins(self))
        return {**data, "path": [state.name for state in self.path]}


# -- Recovery


MAX_RETRIES = 3
_NAMED_PARTS = 3
_HINT = "shorten or unpin the largest parts, or use a model with a larger window"
_HINT_WHEN_OFF = "collect by hand, let the session collect, or use a model with a larger window"

_Answer = TypeVar("_Answer")


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
        self._machine = _StateMachine(subject, config)
        self._sent: list[int] = []

    def before_call(self, off: str | None = None, *, again: bool = False) -> RecoveryReport:
        """Make the context ready for a call, and report what was done.

        `off` says why nothing may be taken out: then there are alerts and checkpoints, and no pruning.
        `again` says that it is the call that was refused, with what `after_refusal` left.

        Raises:
            ContextOverflowError: what must stay does not fit; the error says why, `details` names the parts.
        """
        size, limit = self._subject.size(), self._subject.limit
        alert = self.monitor.check_and_alert(size, limit)
        attempt = _Attempt(before=size, limit=limit, entered=alert is not None, off=off)
        self._sent = self._sent[:-1] if again else []
        return self._ready(self._machine.run(attempt, State.CALL_REQUESTED))

    def after_refusal(self, overflow: Overflow, off: str | None = None) -> RecoveryReport:
        """Make the context strictly smaller, because the provider refused what was sent last.

        `off` says why nothing may be taken out.

        Raises:
            ContextOverflowError: it cannot get smaller, or three retries were refused.
            InputError: nothing was sent.
        """
        if not self._sent:
            raise InputError("nothing was sent that could be refused", hint="use before_call first")
        refused = self._sent[-1]
        limit = window_after(overflow, refused, self._subject.limit)
        attempt = _Attempt(before=self._subject.size(), limit=limit, off=off)
        if len(self._sent) > MAX_RETRIES:
            self._machine.stop(attempt, f"{MAX_RETRIES} retries were refused")
        if not refused:
            self._machine.stop(attempt, "an empty context was refused")
        return self._ready(self._machine.run(attempt, State.CRITICAL_ZONE))

    def call(
        self,
        send: Callable[[], _Answer],
        refusal: Callable[[Exception], Overflow | None],
    ) -> tuple[_Answer, list[RecoveryReport]]:
        """Send with up to three retries; return the answer and one report for each attempt.

        `refusal` reads from an error that the provider refused the context as too long; any other
        error is re-raised.
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


# -- The state machine


class _Attempt:
    """One run of the chart: the size before, the window, and what was done so far.

    After a refusal the window is smaller than what was refused, so that what fits it is smaller too.
    `entered` tells a new zone from one that was seen before, `off` why nothing may be taken out.
    """

    def __init__(
        self, *, before: int, limit: int, entered: bool = True, off: str | None = None
    ) -> None:
        self.before = before
        self.limit = limit
        self.entered = entered
        self.off = off
        self.path: list[State] = []
        self.actions: list[Action] = []


class _StateMachine:
    """Runs the chart for one session: what is done in each state decides the next."""

    def __init__(self, subject: Recoverable, config: GCConfig) -> None:
        self._subject = subject
        self._config = config
        self._prepared = False
        self._steps: dict[State, Callable[[_Attempt], str]] = {
            State.COMPARE_SIZE: self._compare,
            State.LOG_WARNING: self._log_warning,
            State.CREATE_CHECKPOINT: self._create_checkpoint,
            State.PLAN_PRUNING: self._plan_pruning,
            State.EMERGENCY_CHECKPOINT: self._emergency_checkpoint,
            State.CAN_PRUNE_SAFELY: self._can_prune_safely,
            State.PRUNE_NOW: self._prune,
            State.PRUNING_SUCCESSFUL: self._is_pruned,
            State.FALLBACK_MINIMAL: self._fall_back,
            State.RECOVERY_POSSIBLE: self._can_recover,
            State.LOAD_CHECKPOINT: self._load,
            State.AGGRESSIVE_PRUNE: self._prune_aggressively,
        }

    def run(self, attempt: _Attempt, state: State) -> RecoveryReport:
        """Run the chart from a state until the call may be sent.

        Raises:
            ContextOverflowError: it ended in the fatal state.
        """
        attempt.path.append(state)
        while state not in READY:
            if state is State.FATAL:
                self.stop(attempt, attempt.off or self._cause(attempt))
            step = self._steps.get(state)
            state = NEXT[state, DONE if step is None else step(attempt)]
            attempt.path.append(state)
        if state is State.RESUME:
            self._subject.resume()
        return self._report(attempt)

    def stop(self, attempt: _Attempt, why: str) -> NoReturn:
        """Raise the fatal error: it names what must stay, with its tokens, largest first."""
        attempt.path += [s for s in (State.FATAL, State.STOPPED) if s not in attempt.path]
        parts = sorted(self._subject.parts(), key=lambda part: -part.tokens)
        size = self._subject.size()
        largest = ", ".join(f"{part.name} ({part.tokens})" for part in parts[:_NAMED_PARTS])
        raise ContextOverflowError(
            f"the context of {size} tokens does not fit a window of {attempt.limit}: {why}; "
            f"the largest parts: {largest or 'none'}",
            hint=_HINT if attempt.off is None else _HINT_WHEN_OFF,
            cause=why,
            size=size,
            limit=attempt.limit,
            parts=[{"name": part.name, "tokens": part.tokens} for part in parts],
            report=self._report(attempt).to_dict(),
        )

    def _cause(self, attempt: _Attempt) -> str:
        """Return why nothing helped: what must stay is too large, or something that was tried failed."""
        must_stay = sum(part.tokens for part in self._subject.parts())
        if must_stay > attempt.limit:
            return f"what must stay has {must_stay} tokens"
        failed = [f"{action.name}: {action.detail}" for action in attempt.actions if action.detail]
        return "; ".join(dict.fromkeys(failed)) or "nothing that may leave is left"

    def _report(self, attempt: _Attempt) -> RecoveryReport:
        return RecoveryReport(
            path=tuple(attempt.path),
            actions=tuple(attempt.actions),
            size_before=attempt.before,
            size_after=self._subject.size(),
            limit=attempt.limit,
        )

    # -- the four zones

    def _compare(self, attempt: _Attempt) -> str:
        zone = zone_of(percent_of(attempt.before, attempt.limit), self._config)
        if zone.rank < 2:
            self._prepared = False
        return zone.value

    def _log_warning(self, attempt: _Attempt) -> str:
        """Log once for each entry into the zone, not for every call in it."""
        if attempt.entered:
            percent = percent_of(attempt.before, attempt.limit)
            _log.warning("ctxgc: the context is at %.0f%% of its limit", percent)
        attempt.actions.append(
            Action("warning", attempt.entered, "" if attempt.entered else "said before")
        )
        return DONE

    def _create_checkpoint(self, attempt: _Attempt) -> str:
        """Make a checkpoint, unless one was made since the context came into danger."""
        if self._prepared:
            attempt.actions.append(Action("checkpoint", True, "made before"))
        else:
            make = self._subject.checkpoint
            self._prepared = self._try(attempt, "checkpoint", lambda: make(emergency=False))
        return DONE

    def _plan_pruning(self, attempt: _Attempt) -> str:
        target = self._target(attempt)
        self._try(attempt, "plan", lambda: self._subject.plan(target).prunable > 0)
        return DONE

    # -- the critical zone

    def _emergency_checkpoint(self, attempt: _Attempt) -> str:
        """Continue even if it fails: pruning loses nothing by itself, and a full disk needs it most."""
        make = self._subject.checkpoint
        if attempt.off is not None and not attempt.entered:
            attempt.actions.append(Action("emergency checkpoint", True, "made before"))
        else:
            self._try(attempt, "emergency checkpoint", lambda: make(emergency=True))
        return DONE

    def _can_prune_safely(self, attempt: _Attempt) -> str:
        if attempt.off is not None:
            attempt.actions.append(Action("plan", False, attempt.off))
            return NO
        target = self._target(attempt)
        safe = self._try(
            attempt, "plan",
            lambda: can_prune_safely(self._subject.plan(target), self._ceiling(attempt)),
        )  # fmt: skip
        return YES if safe else NO

    def _prune(self, attempt: _Attempt) -> str:
        self._try(attempt, "prune", lambda: self._subject.prune(self._target(attempt)))
        return DONE

    def _is_pruned(self, attempt: _Attempt) -> str:
        """Return whether the context left the critical zone with everything essential in it."""
        out = self._subject.size() < self._ceiling(attempt)
        return YES if out and self._try(attempt, "validate", self._subject.validate) else NO

    def _fall_back(self, attempt: _Attempt) -> str:
        return self._shrunk(attempt, "minimal context", self._subject.minimal)

    # -- after an overflow

    def _can_recover(self, attempt: _Attempt) -> str:
        fits, minimum = self._subject.size() <= attempt.limit, self._subject.checkpoint_minimum
        if attempt.off is not None:
            return TIGHT if fits else NO
        if self._try(attempt, "look", lambda: recovery_possible(minimum(), attempt.limit)):
            return YES
        return TIGHT if fits and self._try(attempt, "validate", self._subject.validate) else NO

    def _load(self, attempt: _Attempt) -> str:
        loaded = self._try(attempt, "load checkpoint", self._subject.load_last_checkpoint)
        return YES if loaded else NO

    def _prune_aggressively(self, attempt: _Attempt) -> str:
        return self._shrunk(attempt, "aggressive pruning", self._subject.aggressive)

    # -- what they share

    def _shrunk(self, attempt: _Attempt, name: str, shrink: Callable[[], bool]) -> str:
        done = self._try(attempt, name, shrink) and self._subject.size() <= attempt.limit
        return YES if done and self._try(attempt, "validate", self._subject.validate) else NO

    def _ceiling(self, attempt: _Attempt) -> int:
        return math.ceil(attempt.limit * self._config.critical_percent / 100)

    def _target(self, attempt: _Attempt) -> int:
        return int(attempt.limit * self._config.prune_to_percent / 100)

    def _try(self, attempt: _Attempt, name: str, act: Callable[[], bool]) -> bool:
        try:
            ok, detail = act(), ""
        except CtxgcError as error:
            ok, detail = False, error.message
        attempt.actions.append(Action(name, ok, detail))
        return ok
