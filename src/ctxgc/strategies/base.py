"""The contract between a session and its strategies: what comes in, what goes out."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from ctxgc.budget import InstructionBudget
from ctxgc.collector import GCResult, GCTriggerReason, PricePlan, PriceRequest
from ctxgc.config import GCConfig
from ctxgc.core import Message


@runtime_checkable
class GCPlugin(Protocol):
    """A strategy. Plugins whose `collect` has no `budget` parameter (S3's form) work as well."""

    @property
    def name(self) -> str:
        """The name that it is registered under, for example `gc_truncate`."""
        ...

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take the options in `GCConfig.plugin_config`."""
        ...

    def shutdown(self) -> None:
        """Release everything that it holds."""
        ...

    def should_collect(
        self, context_usage: Mapping[str, Any], config: GCConfig
    ) -> tuple[bool, GCTriggerReason | None]:
        """Return whether a collection is due, and why."""
        ...

    def collect(
        self,
        history: list[Message],
        context_usage: Mapping[str, Any],
        config: GCConfig,
        reason: GCTriggerReason,
        budget: InstructionBudget | None = None,
    ) -> tuple[list[Message], GCResult]:
        """Return the new history and what was done; `history` itself is not changed."""
        ...


@runtime_checkable
class CollectsForPrice(Protocol):
    """A strategy that also collects for the price: before a request, while the window is far from full.

    `collect` makes room; this is its other pass. A plugin of any package may have it.
    """

    def saves_in(self, context_limit: int, *, is_tight: bool = False) -> bool:
        """Return whether it collects for the price in a window of this size, which may be tight already.

        A window is tight above `soft_limit_percent`.
        """
        ...

    def plan_for_price(self, request: PriceRequest) -> PricePlan:
        """Return what to leave out before a request."""
        ...

    def settle(self, changed: Iterable[Message]) -> None:
        """Take messages for those that the last plan asked for."""
        ...

    def recount(self) -> None:
        """Forget the sizes of messages: the counter has learned."""
        ...

    def forget_view(self) -> None:
        """Forget everything that was read; a plan was not carried out."""
        ...


def run_collect(
    plugin: GCPlugin,
    history: list[Message],
    context_usage: Mapping[str, Any],
    config: GCConfig,
    reason: GCTriggerReason,
    *,
    budget: InstructionBudget | None = None,
) -> tuple[list[Message], GCResult]:
    """Call `plugin.collect`, with the budget only if it takes one."""
    if _takes_budget(plugin):
        return plugin.collect(history, context_usage, config, reason, budget=budget)
    return plugin.collect(history, context_usage, config, reason)


def _takes_budget(plugin: GCPlugin) -> bool:
    try:
        parameters = inspect.signature(plugin.collect).parameters.values()
    except (TypeError, ValueError):  # a callable without a readable signature: S2's form
        return True
    return any(p.name == "budget" or p.kind is p.VAR_KEYWORD for p in parameters)
