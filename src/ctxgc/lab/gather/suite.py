"""The suite: which tasks and which policies to play, and the report on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import get_args

import msgspec

from ctxgc._version import __version__
from ctxgc.economics import PriceSheet, price_sheet
from ctxgc.errors import InputError
from ctxgc.lab.gather.families import FAMILIES
from ctxgc.lab.gather.judge import Room, TaskResult, play_task
from ctxgc.lab.gather.tasks import FORMATS, MIXES, WINDOWS, TaskPlan, plans
from ctxgc.lab.gather.things import CONTENTS
from ctxgc.lab.gather.tools import TOOLS
from ctxgc.lab.policies import policy
from ctxgc.lab.pool import each_in_order, quiet_log


class GatherSuite(msgspec.Struct, frozen=True, kw_only=True):
    """What to play: one task in `every`, at most `most_tasks`."""

    policies: tuple[str, ...]
    windows: tuple[int, ...] = WINDOWS
    families: tuple[str, ...] = tuple(FAMILIES)
    tools: tuple[str, ...] = TOOLS
    sheet: str = "anthropic-5m"
    seed: int = 0
    every: int = 1
    most_tasks: int | None = None

    def plans(self) -> list[TaskPlan]:
        """Return the tasks to play.

        Raises:
            InputError: there are none.
        """
        found = plans(
            windows=self.windows, families=self.families, tools=self.tools, seed=self.seed
        )
        chosen = list(islice(found, None, None, self.every))[: self.most_tasks]
        if not chosen:
            raise InputError("no task is chosen", hint="name a family and a tool", field="families")
        return chosen


class GatherRow(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of one kind under one policy.

    Attributes:
        group: what the tasks have in common.
        from_view: the share of tasks all of whose answers had what they need in view.
        one_recall: the share that one recall or none is enough for.
        lost: needs that were neither in view nor behind a handle in it.
        over: tasks that a request over the window ended.
        recalls: how many recalls a perfect agent makes in a task, on average.
        cost: the bill with the recalls over that of never pruning, of the tasks that were not ended.
    """

    policy: str
    group: dict[str, str]
    tasks: int
    from_view: float
    one_recall: float
    lost: int
    over: int
    recalls: float
    cost: float | None


class GatherReport(msgspec.Struct, frozen=True, kw_only=True):
    """All results, and a row for each policy, window, tool and family, by what fits the window."""

    lab: int = 1
    suite: str = "gather"
    version: str
    seed: int
    sheet: PriceSheet
    policies: tuple[str, ...]
    tasks: int
    rows: list[GatherRow]
    results: list[TaskResult]


TRAITS: dict[str, Callable[[TaskResult], str]] = {
    "window": lambda result: f"{result.plan.window // 1_000}k",
    "tool": lambda result: result.plan.tool,
    "family": lambda result: result.plan.family,
    "fill": lambda result: f"{result.plan.fill:.0%}",
    "content": lambda result: result.plan.content,
    "format": lambda result: result.plan.format,
    "fits": lambda result: result.room,
}
"""What tasks can be grouped by."""

VALUES: dict[str, tuple[str, ...]] = {
    "fits": get_args(Room),
    "tool": TOOLS,
    "family": tuple(FAMILIES),
    "fill": tuple(dict.fromkeys(f"{mix.fill:.0%}" for mix in MIXES)),
    "content": CONTENTS,
    "format": FORMATS,
}
"""The values of traits, in the order of tables."""


def grouped(results: Iterable[TaskResult], *traits: str) -> list[GatherRow]:
    """Return a row for each policy and each combination of traits, in the order of the results."""
    groups: dict[tuple[str, ...], list[TaskResult]] = {}
    for result in results:
        key = (result.policy, *(TRAITS[trait](result) for trait in traits))
        groups.setdefault(key, []).append(result)
    return [
        _row(key[0], dict(zip(traits, key[1:], strict=True)), found)
        for key, found in groups.items()
    ]


def _row(name: str, group: dict[str, str], results: Sequence[TaskResult]) -> GatherRow:
    count = len(results)
    ended = [result for result in results if result.over or result.error]
    played = [result for result in results if result not in ended]
    unpruned = sum(result.unpruned for result in played)
    paid = sum(result.bill for result in played)
    return GatherRow(
        policy=name,
        group=group,
        tasks=count,
        from_view=sum(result.from_view for result in results) / count,
        one_recall=sum(result.one_recall for result in results) / count,
        lost=sum(result.lost for result in results),
        over=len(ended),
        recalls=sum(result.recalls for result in results) / count,
        cost=paid / unpruned if unpruned else None,
    )


def run_gather(
    suite: GatherSuite, jobs: int = 1, done: Callable[[], None] | None = None
) -> GatherReport:
    """Play a suite on this machine and return its report.

    Raises:
        ConfigError: a policy or the price sheet does not exist.
        InputError: no task is chosen.
    """
    sheet = price_sheet(suite.sheet)
    for name in suite.policies:
        policy(name)
    chosen = suite.plans()
    results = each_in_order(partial(_play, suite.policies, sheet), chosen, jobs, done)
    return GatherReport(
        version=__version__,
        seed=suite.seed,
        sheet=sheet,
        policies=suite.policies,
        tasks=len(chosen),
        rows=grouped(results, "fits", "window", "tool", "family"),
        results=results,
    )


def _play(policies: tuple[str, ...], sheet: PriceSheet, plan: TaskPlan) -> list[TaskResult]:
    with quiet_log():
        return [play_task(policy(name), plan, sheet) for name in policies]
