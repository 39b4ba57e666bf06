"""Running a plugin on the view, safely: what it proposes is checked, and its numbers are put right."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from hashlib import blake2b
from typing import Any

import msgspec

from ctxgc.budget import InstructionBudget
from ctxgc.config import GCConfig, mask_text
from ctxgc.core.message import Format, Message
from ctxgc.errors import CtxgcError
from ctxgc.invariants.pairs import Paired
from ctxgc.invariants.verbatim import first_difference
from ctxgc.session.interrupts import interruptible
from ctxgc.session.removals import true_items, unlawful_items
from ctxgc.session.usage import ContextUsage
from ctxgc.session.verdict import Change, compare, objections
from ctxgc.strategies.base import (
    GCPlugin,
    GCRemovalItem,
    GCResult,
    GCTriggerReason,
    run_collect,
)
from ctxgc.wire import parse, render, strip_bound_thinking


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin proposes, checked: the new history, the change, the result with true numbers."""

    history: list[Message]
    change: Change
    result: GCResult


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What the session holds a plugin to: its own counting, and what may not be touched.

    `must_stay` has ids of messages, each with the reason; `binds` says that the model refuses
    thinking behind an edit.
    """

    tokens: Callable[[Message], int]
    must_stay: Mapping[str, str]
    binds: bool = False


def run_plugin(
    plugin: GCPlugin,
    history: Sequence[Message],
    usage: ContextUsage,
    config: GCConfig,
    reason: GCTriggerReason,
    *,
    budget: InstructionBudget,
    bounds: Bounds,
) -> Outcome:
    """Return what a plugin proposes; a plugin that fails proposes nothing and says why."""
    old = history if isinstance(history, Paired) else Paired(history)
    snapshot = budget.snapshot()
    try:
        # Watching costs a tenth of a collection, which our own strategies need not pay.
        watched = not type(plugin).__module__.startswith("ctxgc.")
        with interruptible(), _unchanged(old) if watched else nullcontext():
            returned = run_collect(plugin, list(history), usage, config, reason, budget=budget)
        new, result = _checked_shape(returned, old)
        result.removal_list = (
            _checked_items(result.removal_list) if watched else result.removal_list
        )
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        new, against = old, [_said(error)]
    else:
        against = [] if result.success else [result.error or "the plugin reports no success"]
    if budget.snapshot() != snapshot:
        budget.restore(snapshot)
    change = compare(old, new)
    against = against or _objections(plugin, old, new, result, change, budget=budget, bounds=bounds)
    if against:
        return _refusal(plugin, old, usage, reason, against)
    if bounds.binds:
        new = strip_bound_thinking(new, first_difference(old, new))
        change = compare(old, new)
    outcome = Outcome(history=new, change=change, result=result)
    _settle(outcome, usage, budget, bounds)
    return outcome


def _objections(
    plugin: GCPlugin,
    old: Paired,
    new: Sequence[Message],
    result: GCResult,
    change: Change,
    *,
    budget: InstructionBudget,
    bounds: Bounds,
) -> list[str]:
    kept = {message.message_id for message in new}
    return [
        *objections(
            old,
            new,
            result if _declares(plugin) else None,
            change=change,
            must_stay=bounds.must_stay,
            tokens=bounds.tokens,
        ),
        *unlawful_items(result.removal_list, kept, budget),
    ]


def _declares(plugin: GCPlugin) -> bool:
    """Tell whether `collect` has S2's form, which names what it takes out."""
    try:
        return "budget" in inspect.signature(plugin.collect).parameters
    except (TypeError, ValueError):
        return False


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


def _checked_items(items: Any) -> list[GCRemovalItem]:
    """Return the items of a removal list; an error for what is none, or has fields of a wrong kind."""
    if not isinstance(items, list) or not all(isinstance(i, GCRemovalItem) for i in items):
        raise TypeError("removal_list must be a list of GCRemovalItem")
    return msgspec.convert(msgspec.to_builtins(items), list[GCRemovalItem])


@contextmanager
def _unchanged(history: Sequence[Message]) -> Iterator[None]:
    """Give messages to other people's code, which may not change them: they are as they were afterwards."""
    before = render(history)
    try:
        yield
    finally:
        changed = [pair for pair in zip(history, before, strict=True) if pair[0].data != pair[1]]
        for message, data in changed:
            message.data.clear()
            message.data.update(data)
    if changed:
        name = changed[0][0].message_id
        raise ValueError(f"the plugin changed message {name} in its place; return a new one")


def _as_message(item: object, format_: Format, number: int) -> Message:
    if isinstance(item, Message):
        return item
    if isinstance(item, dict):
        name = blake2b(repr(item).encode("utf-8", "replace"), digest_size=6).hexdigest()
        made = parse(item, format_, f"gc_plugin_{number}_{name}")
        return msgspec.structs.replace(made, origin="gc_notice")
    raise TypeError(f"the new history holds a {type(item).__name__}")


def _settle(
    outcome: Outcome, usage: ContextUsage, budget: InstructionBudget, bounds: Bounds
) -> None:
    """Put the true numbers into a result: there is one ledger, and it is the session's."""
    result, change = outcome.result, outcome.change
    otherwise = "bound_thinking" if bounds.binds else "removed by plugin"
    result.removal_list = true_items(
        result.removal_list, change, budget, bounds.tokens, otherwise=otherwise
    )
    freed = sum(item.tokens_freed for item in result.removal_list)
    result.tokens_before = usage.total_tokens
    result.tokens_after = usage.total_tokens - freed + sum(map(bounds.tokens, change.added))
    result.shortfall = max(0, result.tokens_after - usage.target_tokens)
    result.items_collected = len(result.removal_list)


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


def _said(error: Exception) -> str:
    text = error.message if isinstance(error, CtxgcError) else f"{type(error).__name__}: {error}"
    return mask_text(text)
