"""S4's first chart as data: its boxes are states, its arrows are transitions.

The arrows that S4 does not draw are marked as added: a fallback may fail too, and a context that is
tight but fits is no reason to stop.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


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
