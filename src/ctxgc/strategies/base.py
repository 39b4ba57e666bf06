"""The contract between a session and its strategies: what comes in, what goes out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import msgspec

from ctxgc.budget import InstructionBudget, InstructionSource
from ctxgc.config import GCConfig
from ctxgc.core import Message
from ctxgc.errors import InputError


class GCTriggerReason(StrEnum):
    """Why a collection runs."""

    THRESHOLD = "threshold"
    TURN_LIMIT = "turn_limit"
    MANUAL = "manual"
    PRE_MESSAGE = "pre_message"
    CONTEXT_LIMIT = "context_limit"


class GCRemovalItem(msgspec.Struct, frozen=True):
    """One thing that left the history, as the budget has to book it.

    Without a `child_key` the whole source was cleared.
    """

    source: InstructionSource
    child_key: str | None = None
    tokens_freed: int = 0
    reason: str = ""
    message_ids: tuple[str, ...] = ()


class GCResult(msgspec.Struct):
    """What a collection did.

    `shortfall` says how many tokens it stayed above its target, `turns_over` how many turns above theirs.
    """

    success: bool
    items_collected: int
    tokens_before: int
    tokens_after: int
    plugin_name: str
    trigger_reason: GCTriggerReason
    notification: str | None = None
    details: dict[str, Any] = msgspec.field(default_factory=dict)
    error: str | None = None
    removal_list: list[GCRemovalItem] = msgspec.field(default_factory=list)
    shortfall: int = 0
    turns_over: int = 0

    @property
    def tokens_freed(self) -> int:
        """The tokens that the history is shorter by."""
        return self.tokens_before - self.tokens_after

    def to_dict(self) -> dict[str, Any]:
        """Return every field, and `tokens_freed`, as JSON-ready data; `turns_over` if there are any."""
        data: dict[str, Any] = msgspec.to_builtins(self, enc_hook=repr, str_keys=True)
        if not self.turns_over:
            del data["turns_over"]
        for item in data["removal_list"]:
            item["message_ids"] = list(item["message_ids"])
        return data | {"tokens_freed": self.tokens_freed}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GCResult:
        """Return the result that `to_dict` described.

        Raises:
            InputError: a field is missing or wrong.
        """
        try:
            return msgspec.convert(dict(data), cls)
        except msgspec.ValidationError as error:
            raise InputError(f"GC result: {error}", hint="pass what to_dict() gave") from None


class Constraints(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a strategy, as data. The defaults promise nothing.

    `monotone`: a bigger budget keeps a superset. `rewrites_prefix`: it may change what was sent
    before. `needs_summarizer`: without one it uses an extract and says so. `lossy`: without
    a session, which stashes what leaves, it is gone.
    """

    monotone: bool = False
    rewrites_prefix: bool = True
    needs_summarizer: bool = False
    lossy: bool = True


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


def constraints_of(plugin: GCPlugin) -> Constraints:
    """Return the facts that a plugin declares as `constraints`, else those that promise nothing."""
    declared = getattr(plugin, "constraints", None)
    return declared if isinstance(declared, Constraints) else Constraints()


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
