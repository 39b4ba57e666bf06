"""The arrows of S4's chart: one test for each."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from ctxgc.errors import ContextOverflowError
from ctxgc.guard import Recovery, State
from ctxgc.guard.recovery import TRANSITIONS, Transition
from tests.guard.scripted import Scripted

S = State

SAFE, WARNING, DANGER, CRITICAL = {"now": 10}, {"now": 75}, {"now": 90}, {"now": 96}
MINIMAL = {"now": 96, "pruned_to": 96}
MINIMAL_FAILS = {"now": 110, "pruned_to": 110, "minimum": 101}
RECOVERS = {"now": 110, "must_stay": 99}
TIGHT = {"now": 97, "must_stay": 97, "stored_minimum": None}
HOPELESS = {**RECOVERS, "stored_minimum": None}
NOT_LOADED = {**RECOVERS, "fails": frozenset({"load"})}
NOT_ENOUGH = {**RECOVERS, "aggressive_to": 101}

SUBJECT_OF: dict[tuple[State, str], dict[str, Any]] = {
    (S.CALL_REQUESTED, "done"): SAFE,
    (S.CHECK_SIZE, "done"): SAFE,
    (S.COMPARE_SIZE, "safe"): SAFE,
    (S.COMPARE_SIZE, "warning"): WARNING,
    (S.COMPARE_SIZE, "danger"): DANGER,
    (S.COMPARE_SIZE, "critical"): CRITICAL,
    (S.SAFE_ZONE, "done"): SAFE,
    (S.WARNING_ZONE, "done"): WARNING,
    (S.LOG_WARNING, "done"): WARNING,
    (S.DANGER_ZONE, "done"): DANGER,
    (S.CREATE_CHECKPOINT, "done"): DANGER,
    (S.PLAN_PRUNING, "done"): DANGER,
    (S.CRITICAL_ZONE, "done"): CRITICAL,
    (S.EMERGENCY_CHECKPOINT, "done"): CRITICAL,
    (S.CAN_PRUNE_SAFELY, "yes"): CRITICAL,
    (S.CAN_PRUNE_SAFELY, "no"): RECOVERS,
    (S.PRUNE_NOW, "done"): CRITICAL,
    (S.PRUNING_SUCCESSFUL, "yes"): CRITICAL,
    (S.PRUNING_SUCCESSFUL, "no"): MINIMAL,
    (S.FALLBACK_MINIMAL, "yes"): MINIMAL,
    (S.FALLBACK_MINIMAL, "no"): MINIMAL_FAILS,
    (S.OVERFLOW, "done"): RECOVERS,
    (S.RECOVERY_POSSIBLE, "yes"): RECOVERS,
    (S.RECOVERY_POSSIBLE, "no"): HOPELESS,
    (S.RECOVERY_POSSIBLE, "tight"): TIGHT,
    (S.LOAD_CHECKPOINT, "yes"): RECOVERS,
    (S.LOAD_CHECKPOINT, "no"): NOT_LOADED,
    (S.AGGRESSIVE_PRUNE, "yes"): RECOVERS,
    (S.AGGRESSIVE_PRUNE, "no"): NOT_ENOUGH,
    (S.EXECUTE, "done"): SAFE,
    (S.RESUME, "done"): RECOVERS,
    (S.FATAL, "done"): HOPELESS,
}


@pytest.mark.parametrize("arrow", TRANSITIONS, ids=lambda a: f"{a.source.name}-{a.outcome}")
def test_the_arrow_is_taken(arrow: Transition) -> None:
    subject = Scripted(**SUBJECT_OF[arrow.source, arrow.outcome])
    try:
        path = list(Recovery(subject).before_call().completed().path)
    except ContextOverflowError as error:
        path = [State[name] for name in error.details["report"]["path"]]
    assert (arrow.source, arrow.target) in set(pairwise(path))
