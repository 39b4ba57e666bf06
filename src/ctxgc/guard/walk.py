"""One walk over the chart: what is done in each state, and which way it goes on from there."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from ctxgc.config import GCConfig
from ctxgc.errors import ContextOverflowError, CtxgcError
from ctxgc.guard.recoverable import Recoverable, can_prune_safely, recovery_possible
from ctxgc.guard.states import DONE, NEXT, NO, READY, TIGHT, YES, State
from ctxgc.guard.zones import percent_of, zone_of

_log = logging.getLogger("ctxgc")


class Action(msgspec.Struct, frozen=True):
    """Something that was tried, whether it worked, and what was said about it."""

    name: str
    ok: bool
    detail: str = ""


class RecoveryReport(msgspec.Struct, frozen=True, kw_only=True):
    """The path that was taken over the chart, what was done, and the sizes before and after."""

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


class Walk:
    """What one walk knows: the size before, the window, and what was done so far.

    After a refusal the window is smaller than what was refused, so that what fits it is smaller too.
    """

    def __init__(self, *, before: int, limit: int, entered: bool = True) -> None:
        self.before = before
        self.limit = limit
        self.entered = entered
        self.path: list[State] = []
        self.actions: list[Action] = []


class Walker:
    """Walks the chart for one session."""

    def __init__(self, subject: Recoverable, config: GCConfig) -> None:
        self._subject = subject
        self._config = config
        self._prepared = False
        self._steps: dict[State, Callable[[Walk], str]] = {
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

    def run(self, walk: Walk, state: State) -> RecoveryReport:
        """Walk from a state until the call may be sent.

        Raises:
            ContextOverflowError: the walk ended in the fatal state.
        """
        walk.path.append(state)
        while state not in READY:
            if state is State.FATAL:
                self.stop(walk, "nothing that may leave is left")
            step = self._steps.get(state)
            state = NEXT[state, DONE if step is None else step(walk)]
            walk.path.append(state)
        if state is State.RESUME:
            self._subject.resume()
        return self._report(walk)

    def stop(self, walk: Walk, why: str) -> NoReturn:
        """Raise the fatal error: it names what must stay, with its tokens, largest first."""
        walk.path += [s for s in (State.FATAL, State.STOPPED) if s not in walk.path]
        parts = sorted(self._subject.parts(), key=lambda part: (-part.tokens, part.name))
        size = self._subject.size()
        raise ContextOverflowError(
            f"the context of {size} tokens does not fit a window of {walk.limit}: {why}",
            hint="shorten or unpin the largest parts, or use a model with a larger window",
            size=size,
            limit=walk.limit,
            parts=[{"name": part.name, "tokens": part.tokens} for part in parts],
            report=self._report(walk).to_dict(),
        )

    def _report(self, walk: Walk) -> RecoveryReport:
        return RecoveryReport(
            path=tuple(walk.path),
            actions=tuple(walk.actions),
            size_before=walk.before,
            size_after=self._subject.size(),
            limit=walk.limit,
        )

    # -- the four zones -----------------------------------------------------------------------------

    def _compare(self, walk: Walk) -> str:
        zone = zone_of(percent_of(walk.before, walk.limit), self._config)
        if zone.rank < 2:
            self._prepared = False
        return zone.value

    def _log_warning(self, walk: Walk) -> str:
        """Log once for each entry into the zone, not for every call in it."""
        if walk.entered:
            percent = percent_of(walk.before, walk.limit)
            _log.warning("ctxgc: the context is at %.0f%% of its limit", percent)
        walk.actions.append(Action("warning", walk.entered, "" if walk.entered else "said before"))
        return DONE

    def _create_checkpoint(self, walk: Walk) -> str:
        """Make a checkpoint, unless one was made since the context came into danger."""
        if self._prepared:
            walk.actions.append(Action("checkpoint", True, "made before"))
        else:
            make = self._subject.checkpoint
            self._prepared = self._try(walk, "checkpoint", lambda: make(emergency=False))
        return DONE

    def _plan_pruning(self, walk: Walk) -> str:
        target = self._target(walk)
        self._try(walk, "plan", lambda: self._subject.plan(target).prunable > 0)
        return DONE

    # -- the critical zone --------------------------------------------------------------------------

    def _emergency_checkpoint(self, walk: Walk) -> str:
        """Go on even if it fails: relief loses nothing by itself, and a full disk needs it most."""
        make = self._subject.checkpoint
        self._try(walk, "emergency checkpoint", lambda: make(emergency=True))
        return DONE

    def _can_prune_safely(self, walk: Walk) -> str:
        target = self._target(walk)
        safe = self._try(
            walk, "plan",
            lambda: can_prune_safely(self._subject.plan(target), self._ceiling(walk)),
        )  # fmt: skip
        return YES if safe else NO

    def _prune(self, walk: Walk) -> str:
        self._try(walk, "prune", lambda: self._subject.prune(self._target(walk)))
        return DONE

    def _is_pruned(self, walk: Walk) -> str:
        """Out of the critical zone, and everything essential still there."""
        out = self._subject.size() < self._ceiling(walk)
        return YES if out and self._try(walk, "validate", self._subject.validate) else NO

    def _fall_back(self, walk: Walk) -> str:
        return self._shrunk(walk, "minimal context", self._subject.minimal)

    # -- after an overflow --------------------------------------------------------------------------

    def _can_recover(self, walk: Walk) -> str:
        minimum = self._subject.checkpoint_minimum
        if self._try(walk, "look", lambda: recovery_possible(minimum(), walk.limit)):
            return YES
        fits = self._subject.size() <= walk.limit
        return TIGHT if fits and self._try(walk, "validate", self._subject.validate) else NO

    def _load(self, walk: Walk) -> str:
        loaded = self._try(walk, "load checkpoint", self._subject.load_last_checkpoint)
        return YES if loaded else NO

    def _prune_aggressively(self, walk: Walk) -> str:
        return self._shrunk(walk, "aggressive pruning", self._subject.aggressive)

    # -- what they share ----------------------------------------------------------------------------

    def _shrunk(self, walk: Walk, name: str, shrink: Callable[[], bool]) -> str:
        done = self._try(walk, name, shrink) and self._subject.size() <= walk.limit
        return YES if done and self._try(walk, "validate", self._subject.validate) else NO

    def _ceiling(self, walk: Walk) -> int:
        return math.ceil(walk.limit * self._config.critical_percent / 100)

    def _target(self, walk: Walk) -> int:
        return int(walk.limit * self._config.prune_to_percent / 100)

    def _try(self, walk: Walk, name: str, act: Callable[[], bool]) -> bool:
        try:
            ok, detail = act(), ""
        except CtxgcError as error:
            ok, detail = False, error.message
        walk.actions.append(Action(name, ok, detail))
        return ok
