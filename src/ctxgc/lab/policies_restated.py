"""Published pruning rules and plain masks, reimplemented for the lab.

None of this is the authors' code. If a publication leaves something open, the reading that is better
for the rule was chosen. The settings of each policy name the source of its rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ctxgc.lab.policies import Kind, Player, Policy, PolicyTask
from ctxgc.lab.view import Json, LabView

_Rule = Callable[[LabView, PolicyTask], None]

START_SHARE = 0.8
TARGET_SHARE = 0.6

OMITTED = "[result omitted]"
OPENCODE_CLEARED = "[Old tool result content cleared]"
ANTHROPIC_CLEARED = "[tool result cleared to save context]"


class _Restated:
    """A rule that edits a history before each request."""

    kind: Kind = "restated"
    version = "restated 2026-11"

    def __init__(self, name: str, rule: _Rule, **settings: Any) -> None:
        self.name = name
        self.settings = settings
        self._rule = rule

    def open(self, task: PolicyTask) -> Player:
        """Begin a run."""
        return _Editor(self._rule, task)


class _Editor:
    """Applies one rule to one run."""

    def __init__(self, rule: _Rule, task: PolicyTask) -> None:
        self._rule = rule
        self._task = task
        self._shown = LabView()
        self._collections = 0

    def view(self, history: list[Json]) -> list[Json]:
        self._shown.take(history)
        before = self._shown.edits
        self._rule(self._shown, self._task)
        self._collections += self._shown.edits > before
        return self._shown.view()

    def is_recallable(self, index: int) -> bool:  # noqa: ARG002 - these rules leave no handle
        return False

    def counts(self) -> dict[str, float]:
        return {"collections": self._collections}


# -- Masks


def _keep_last(keep: int) -> _Rule:
    """Mask all results but the newest `keep`, before each request."""
    return lambda shown, _: shown.mask(shown.results[:-keep], OMITTED)


def _batch(full: int, keep: int) -> _Rule:
    """Once `full` results are unmasked, mask all but the newest `keep`."""

    def rule(shown: LabView, _: PolicyTask) -> None:
        whole = shown.whole_results()
        if len(whole) >= full:
            shown.mask(whole[:-keep], OMITTED)

    return rule


def _mask_oldest(shown: LabView, task: PolicyTask) -> None:
    """Above 80% of the limit, mask the oldest results down to 60%; drop the oldest if masks fall short."""
    if shown.size <= START_SHARE * task.limit:
        return
    target = int(TARGET_SHARE * task.limit)
    last = shown.units[-1]
    for index in shown.whole_results():
        if shown.size <= target or index in last:
            break
        shown.mask([index], OMITTED)
    if shown.size > START_SHARE * task.limit:
        shown.drop_until(target, shown.droppable())


# -- Truncation


def _drop_half(shown: LabView, task: PolicyTask) -> None:
    """Drop the oldest half: in COST before each request, in WINDOW above 80% of the limit."""
    if task.regime == "cost":
        middle = (shown.head + len(shown.messages)) // 2
        shown.drop(unit for unit in shown.droppable() if unit.stop <= middle)
        return
    while shown.size > START_SHARE * task.limit and (units := shown.droppable()):
        shown.drop(units[: (len(units) + 1) // 2])


def _truncate(shown: LabView, task: PolicyTask) -> None:
    """Above 80% of the limit, drop the oldest units down to 60%."""
    if shown.size > START_SHARE * task.limit:
        shown.drop_until(int(TARGET_SHARE * task.limit), shown.droppable())


# -- Published rules


def _opencode(shown: LabView, _: PolicyTask) -> None:
    """When a turn has ended: prune results before the last two turns, but their newest 40k tokens."""
    users = [i for i, message in enumerate(shown.messages) if message["role"] == "user"]
    if len(users) >= 3 and users[-1] >= shown.sent:
        _opencode_prune(shown, users[-3])


def _opencode_eager(shown: LabView, _: PolicyTask) -> None:
    """Do the same before each request, and without regard to turns."""
    _opencode_prune(shown, len(shown.messages))


def _opencode_prune(shown: LabView, end: int, protect: int = 40_000, least: int = 20_000) -> None:
    passed, pruned, leaving = 0, 0, []
    for index in reversed([i for i in shown.results if i < end]):
        if not shown.is_whole(index):
            break
        estimate = round(len(str(shown.messages[index].get("content") or "")) / 4)
        passed += estimate
        if passed > protect:
            pruned += estimate
            leaving.append(index)
    if pruned > least:
        shown.mask(leaving, OPENCODE_CLEARED)


def _clear_tool_uses(trigger: int, keep: int, clear_at_least: int) -> _Rule:
    """Above `trigger` tokens, clear all results but the newest `keep`, if that clears enough."""

    def rule(shown: LabView, task: PolicyTask) -> None:
        room = trigger if task.regime == "cost" else min(trigger, int(START_SHARE * task.limit))
        leaving = [i for i in shown.results[:-keep] if shown.is_whole(i)]
        if shown.size > room and sum(shown.weights[i] for i in leaving) >= clear_at_least:
            shown.mask(leaving, ANTHROPIC_CLEARED)

    return rule


# -- Factories for the registry

_OPENCODE = "opencode, session compaction: prune() of packages/opencode/src/session/compaction.ts"
_ANTHROPIC = "Anthropic, context editing: clear_tool_uses_20250919"
_PLAIN = "a plain mask, as many agents have it"


def mask_keep_1() -> Policy:
    """Return the mask that keeps one result."""
    return _Restated("mask-keep-1", _keep_last(1), source=_PLAIN, keep=1)


def mask_keep_3() -> Policy:
    """Return the mask that keeps three results."""
    return _Restated("mask-keep-3", _keep_last(3), source=_PLAIN, keep=3)


def mask_keep_10() -> Policy:
    """Return the mask that keeps ten results."""
    return _Restated("mask-keep-10", _keep_last(10), source=_PLAIN, keep=10)


def mask_10_3() -> Policy:
    """Return the mask that waits for ten results and keeps three."""
    return _Restated("mask-10-3", _batch(10, 3), source=_PLAIN, full=10, keep=3)


def mask_30_10() -> Policy:
    """Return the mask that waits for thirty results and keeps ten."""
    return _Restated("mask-30-10", _batch(30, 10), source=_PLAIN, full=30, keep=10)


def mask_oldest_results() -> Policy:
    """Return the mask for a window: the reference's best peer."""
    return _Restated("mask-oldest", _mask_oldest, source=_PLAIN, start=START_SHARE, to=TARGET_SHARE)


def drop_oldest_half() -> Policy:
    """Return the rule that keeps the newer half."""
    return _Restated("drop-oldest-half", _drop_half, source="plain truncation", start=START_SHARE)


def truncate_oldest() -> Policy:
    """Return the sliding window."""
    settings = {"start": START_SHARE, "to": TARGET_SHARE}
    return _Restated("truncate-oldest", _truncate, source="plain truncation", **settings)


def opencode_prune() -> Policy:
    """Return opencode's rule as it is published."""
    settings = {"protect": 40_000, "least": 20_000, "turns": 2, "when": "a turn has ended"}
    return _Restated("opencode-prune", _opencode, source=_OPENCODE, **settings)


def opencode_prune_eager() -> Policy:
    """Return opencode's two numbers without its turns, as the reference experiment had them."""
    settings = {"protect": 40_000, "least": 20_000, "turns": 0, "when": "each request"}
    return _Restated("opencode-prune-eager", _opencode_eager, source=_OPENCODE, **settings)


def anthropic_clear() -> Policy:
    """Return Anthropic's rule with its defaults; in WINDOW it triggers at 80% of the limit."""
    return _anthropic("anthropic-clear", trigger=100_000, keep=3, clear_at_least=0)


def anthropic_clear_30k() -> Policy:
    """Return Anthropic's rule with the numbers of its published example."""
    return _anthropic("anthropic-clear-30k", trigger=30_000, keep=3, clear_at_least=5_000)


def _anthropic(name: str, **numbers: int) -> Policy:
    return _Restated(name, _clear_tool_uses(**numbers), source=_ANTHROPIC, **numbers)
