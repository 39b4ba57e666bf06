"""Plans: what was analysed, kept for a while under an id that cannot be guessed."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from datetime import datetime, timedelta

import msgspec

from ctxgc.core.plan import PruningPlan
from ctxgc.errors import StalePlanError

MOST_PLANS = 20
LIFETIME = timedelta(hours=1)


class KeptPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with its id and the time that it was made."""

    plan_id: str
    made_at: datetime
    plan: PruningPlan


class Plans:
    """The last plans of one context. Those of another caller are not here, whatever their id."""

    def __init__(self) -> None:
        self._plans: OrderedDict[str, KeptPlan] = OrderedDict()

    def keep(self, plan: PruningPlan, now: datetime) -> KeptPlan:
        """Keep a plan and return it with its id; the oldest make room."""
        kept = KeptPlan(plan_id=f"plan-{secrets.token_hex(16)}", made_at=now, plan=plan)
        self._plans[kept.plan_id] = kept
        while len(self._plans) > MOST_PLANS:
            self._plans.popitem(last=False)
        return kept

    def get(self, plan_id: str, heap_version: int, now: datetime) -> KeptPlan:
        """Return a plan that can still be applied.

        Raises:
            StalePlanError: it is unknown, too old, or the context changed since it was made.
        """
        kept = self._plans.get(plan_id)
        if kept is None or now - kept.made_at > LIFETIME:
            raise _stale("the plan is not known here, or too old")
        if kept.plan.heap_version != heap_version:
            raise _stale("the context changed since the plan was made")
        return kept

    def usable(self, heap_version: int, now: datetime) -> list[KeptPlan]:
        """Return the plans that could be applied now, newest first."""
        return [
            kept
            for kept in reversed(self._plans.values())
            if kept.plan.heap_version == heap_version and now - kept.made_at <= LIFETIME
        ]


def _stale(why: str) -> StalePlanError:
    return StalePlanError(
        why, hint="call context_gc_analyze again and use the new plan_id", field="plan_id"
    )
