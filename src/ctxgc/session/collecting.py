"""Running a plugin on the view, safely."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ctxgc.budget import InstructionBudget, InstructionSource
from ctxgc.config import GCConfig, mask_text
from ctxgc.core.message import Format, Message
from ctxgc.errors import CtxgcError
from ctxgc.session.usage import ContextUsage
from ctxgc.session.verdict import Change, compare, objections
from ctxgc.strategies.base import GCPlugin, GCRemovalItem, GCResult, GCTriggerReason, run_collect
from ctxgc.wire import parse


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin proposes, checked: the new history, the change, the result with true numbers."""

    history: list[Message]
    change: Change
    result: GCResult


def run_plugin(
    plugin: GCPlugin,
    history: Sequence[Message],
    usage: ContextUsage,
    config: GCConfig,
    reason: GCTriggerReason,
    *,
    budget: InstructionBudget,
    tokens: Callable[[Message], int],
    must_stay: Sequence[str],
) -> Outcome:
    """Return what a plugin proposes; a plugin that fails proposes nothing and says why."""
    old = list(history)
    snapshot = budget.snapshot()
    try:
        returned = run_collect(plugin, list(history), usage, config, reason, budget=budget)
        new, result = _checked_shape(returned, old)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        budget.restore(snapshot)
        return _refusal(plugin, old, usage, reason, [_said(error)])
    if budget.snapshot() != snapshot:
        budget.restore(snapshot)
    change = compare(old, new)
    against = objections(
        old, new, change, result, must_stay=must_stay, declares=_declares(plugin), tokens=tokens
    )
    if against or not result.success:
        return _refusal(plugin, old, usage, reason, against or [result.error or "no success"])
    _settle(result, change, usage, tokens)
    return Outcome(history=new, change=change, result=result)


def _checked_shape(returned: Any, old: Sequence[Message]) -> tuple[list[Message], GCResult]:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise TypeError("collect() must return (new_history, GCResult)")
    new, result = returned
    if not isinstance(new, list) or not isinstance(result, GCResult):
        raise TypeError("collect() must return a list of messages and a GCResult")
    if old and not new:
        raise ValueError("the new history is empty")
    format_: Format = old[0].format if old else "openai"
    return [_as_message(item, format_, number) for number, item in enumerate(new)], result


def _as_message(item: object, format_: Format, number: int) -> Message:
    if isinstance(item, Message):
        return item
    if isinstance(item, dict):
        made = parse(item, format_, f"gc_plugin_{number}_{abs(hash(str(item))):x}")
        return msgspec.structs.replace(made, origin="gc_notice")
    raise TypeError(f"the new history holds a {type(item).__name__}")


def _settle(
    result: GCResult, change: Change, usage: ContextUsage, tokens: Callable[[Message], int]
) -> None:
    """Put the true numbers into a result: there is one ledger, and it is the session's."""
    freed = sum(tokens(m) for m in change.gone)
    freed += sum(tokens(before) - tokens(after) for before, after in change.edited)
    cleared = _cleared_beside_messages(result, change, tokens)
    added = sum(tokens(m) for m in change.added)
    result.tokens_before = usage.total_tokens
    result.tokens_after = usage.total_tokens - freed - cleared + added
    result.shortfall = max(0, result.tokens_after - usage.target_tokens)
    if not result.removal_list:
        result.removal_list = _derived(change, tokens)
        result.items_collected = result.items_collected or len(result.removal_list)


def _cleared_beside_messages(
    result: GCResult, change: Change, tokens: Callable[[Message], int]
) -> int:
    """What a bulk clear freed that was not in messages: text that the host adds to each request."""
    sizes = {m.message_id: tokens(m) for m in change.gone}
    bulk = [item for item in result.removal_list if item.child_key is None]
    return sum(item.tokens_freed - sum(sizes.get(i, 0) for i in item.message_ids) for item in bulk)


def _derived(change: Change, tokens: Callable[[Message], int]) -> list[GCRemovalItem]:
    items = [(m, tokens(m)) for m in change.gone]
    items += [(before, tokens(before) - tokens(after)) for before, after in change.edited]
    return [
        GCRemovalItem(
            InstructionSource.CONVERSATION,
            m.message_id,
            freed,
            "removed by plugin",
            (m.message_id,),
        )
        for m, freed in items
    ]


def _refusal(
    plugin: GCPlugin,
    old: list[Message],
    usage: ContextUsage,
    reason: GCTriggerReason,
    against: list[str],
) -> Outcome:
    result = GCResult(
        success=False,
        items_collected=0,
        tokens_before=usage.total_tokens,
        tokens_after=usage.total_tokens,
        plugin_name=str(getattr(plugin, "name", type(plugin).__name__)),
        trigger_reason=reason,
        error="; ".join(against),
        shortfall=max(0, usage.total_tokens - usage.target_tokens),
    )
    return Outcome(history=old, change=Change(gone=[], edited=[], added=[]), result=result)


def _declares(plugin: GCPlugin) -> bool:
    """Tell whether `collect` has S2's form, which names what it takes out."""
    try:
        return "budget" in inspect.signature(plugin.collect).parameters
    except (TypeError, ValueError):
        return False


def _said(error: Exception) -> str:
    text = error.message if isinstance(error, CtxgcError) else f"{type(error).__name__}: {error}"
    return mask_text(text)
