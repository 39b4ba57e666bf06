"""Running a plugin on the view, safely: its proposal is checked, and its numbers are put right."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource
from ctxgc.collector import GCRemovalItem, GCResult, GCTriggerReason, turn_ids, with_messages
from ctxgc.config import GCConfig, mask_text
from ctxgc.core import Format, Message
from ctxgc.errors import CtxgcError
from ctxgc.invariants import Paired, changed_thinking, check, first_difference
from ctxgc.session.calls import interruptible
from ctxgc.session.usage import ContextUsage
from ctxgc.session.view import HistoryChange, compare, tools_of, without_same
from ctxgc.strategies import GCPlugin, run_collect
from ctxgc.wire import parse, render, strip_bound_thinking


class CheckedProposal(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin proposes, checked: the new history, the change, the result with true numbers."""

    history: list[Message]
    change: HistoryChange
    result: GCResult


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What the session holds a plugin to: its own counting, and what may not be touched.

    `must_stay` has ids of messages, each with the reason; `binds` says that the model refuses
    thinking that comes after an edit.
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
) -> CheckedProposal:
    """Return what a plugin proposes; a plugin that fails proposes nothing and says why."""
    old = history if isinstance(history, Paired) else Paired(history)
    # Watching costs a tenth of a collection; our own strategies are trusted.
    watched = not type(plugin).__module__.startswith("ctxgc.")
    snapshot = budget.snapshot() if watched else None
    try:
        with interruptible(), _unchanged(old) if watched else nullcontext():
            returned = run_collect(plugin, list(history), usage, config, reason, budget=budget)
        new, result = _checked_shape(returned, old)
        if watched:
            result.removal_list = with_messages(
                _checked_items(result.removal_list), turn_ids(old), budget
            )
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        new, against = old, [_said(error)]
    else:
        against = [] if result.success else [result.error or "the plugin reports no success"]
    if snapshot is not None and budget.snapshot() != snapshot:
        budget.restore(snapshot)
    change = compare(old, new)
    against = against or _objections(plugin, old, new, result, change, budget=budget, bounds=bounds)
    if against:
        return _refusal(plugin, old, usage, reason, against)
    if bounds.binds:
        new = strip_bound_thinking(new, first_difference(old, new))
        change = compare(old, new)
    outcome = CheckedProposal(history=new, change=change, result=result)
    _settle(outcome, usage, budget, bounds)
    return outcome


def _objections(
    plugin: GCPlugin,
    old: Paired,
    new: Sequence[Message],
    result: GCResult,
    change: HistoryChange,
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
    """Return whether `collect` has S2's form, which names what it removes."""
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
    """Return the items of a removal list; raise TypeError for anything else in it."""
    if not isinstance(items, list) or not all(isinstance(i, GCRemovalItem) for i in items):
        raise TypeError("removal_list must be a list of GCRemovalItem")
    return msgspec.convert(msgspec.to_builtins(items), list[GCRemovalItem])


@contextmanager
def _unchanged(history: Sequence[Message]) -> Iterator[None]:
    """Give messages to third-party code, and undo its changes to them: it may only return new ones."""
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
    outcome: CheckedProposal, usage: ContextUsage, budget: InstructionBudget, bounds: Bounds
) -> None:
    """Put the session's own numbers into a result."""
    result, change = outcome.result, outcome.change
    otherwise = "thinking bound to what changed before it" if bounds.binds else "removed by plugin"
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
) -> CheckedProposal:
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
    return CheckedProposal(
        history=old, change=HistoryChange(gone=[], edited=[], added=[]), result=result
    )


def _said(error: Exception) -> str:
    text = error.message if isinstance(error, CtxgcError) else f"{type(error).__name__}: {error}"
    return mask_text(text)


# -- Objections


def objections(
    old: Paired,
    new: Sequence[Message],
    declared: GCResult | None,
    *,
    change: HistoryChange,
    must_stay: Mapping[str, str],
    tokens: Callable[[Message], int],
) -> list[str]:
    """Return why a new history may not be applied; empty when it may.

    Args:
        old: the history before.
        new: the history that the plugin returned.
        declared: what the plugin says it did; None when it could not say (S3's form).
        change: how the new history differs from the old one.
        must_stay: ids of messages that no plugin may remove or edit, with the reason.
        tokens: counts a message.
    """
    found = _lost_order(old, new)
    touched = [m.message_id for m in change.gone] + [m.message_id for m, _ in change.edited]
    kept = _named(old, [i for i in touched if i in must_stay])
    found += [f"{name} must stay as it is: {must_stay[i]}" for i, name in kept.items()]
    found += [f"the id {m.message_id} has a colon" for m in change.added if ":" in m.message_id]
    if declared is not None:
        found += _undeclared(old, touched, declared)
    if not found:
        history = _paired_like(old, new, change)
        broken = [*check(history, complete=False, known=old), *changed_thinking(old, new)]
        found = [f"{v.promise}: {v.text}" for v in broken[:3]]
    if _has_grown(*without_same(old, new), tokens):
        found.append("the history grew")
    return found


def _paired_like(old: Paired, new: Sequence[Message], change: HistoryChange) -> Paired:
    """Return the new history; where only texts changed, its results answer the same calls as before."""
    history = Paired(new)
    same = all(tools_of(before) == tools_of(after) for before, after in change.edited)
    if same and not change.gone and not change.added:
        history.pairing = old.pairing
    return history


def _has_grown(
    old: Sequence[Message], new: Sequence[Message], tokens: Callable[[Message], int]
) -> bool:
    """Return whether the messages that are in one history only have more tokens in the new one."""
    before, after = set(map(id, old)), set(map(id, new))
    gone = sum([tokens(message) for message in old if id(message) not in after])
    return sum([tokens(message) for message in new if id(message) not in before]) > gone


def _lost_order(old: Sequence[Message], new: Sequence[Message]) -> list[str]:
    ids, old_ids = [m.message_id for m in new], [m.message_id for m in old]
    kept = set(ids)
    if len(kept) != len(ids):
        return ["a message is in the new history twice"]
    if ids == old_ids:
        return []
    before = set(old_ids)
    expected = [message_id for message_id in old_ids if message_id in kept]
    return [] if expected == [i for i in ids if i in before] else ["the order of messages changed"]


def _named(history: Sequence[Message], ids: Collection[str]) -> dict[str, str]:
    """Return a description of each of these messages: its place, its role and its id."""
    wanted = set(ids)
    return {
        m.message_id: f"message {place} ({m.role}, id {m.message_id})"
        for place, m in enumerate(history if wanted else ())
        if m.message_id in wanted
    }


def _undeclared(old: Sequence[Message], touched: Sequence[str], result: GCResult) -> list[str]:
    named: set[str] = set()
    for item in result.removal_list:
        named.update(item.message_ids)
        if item.child_key is not None:
            named.add(item.child_key)
    silent = _named(old, [i for i in touched if i not in named])
    return [f"{name} is gone but not in the removal list" for name in silent.values()]


# -- Removals


def true_items(
    declared: Sequence[GCRemovalItem],
    change: HistoryChange,
    budget: InstructionBudget,
    tokens: Callable[[Message], int],
    *,
    otherwise: str = "removed by plugin",
) -> list[GCRemovalItem]:
    """Return one item for each thing that leaves or shrinks, with the tokens that it really frees.

    `otherwise` is the reason for what the plugin did not declare.
    """
    beside = [replace(item, tokens_freed=_booked(item, budget)) for item in declared
              if is_beside_messages(item, budget)]  # fmt: skip
    in_bulk = {i for item in beside for i in item.message_ids}
    reasons = {i: item for item in declared for i in (*item.message_ids, item.child_key)}
    freed = {m.message_id: tokens(m) for m in change.gone}
    freed |= {old.message_id: tokens(old) - tokens(new) for old, new in change.edited}
    return [
        *beside,
        *(
            _of_message(i, n, reasons.get(i), otherwise)
            for i, n in freed.items()
            if i not in in_bulk
        ),
    ]


def unlawful_items(
    declared: Sequence[GCRemovalItem], kept: set[str], budget: InstructionBudget
) -> Iterator[str]:
    """Yield what is wrong with items that are not messages: they remove what is locked, or what stays."""
    for item in declared:
        if not is_beside_messages(item, budget):
            continue
        entry = budget.get_child(item.source, item.child_key) or budget.get_entry(item.source)
        parts = list(entry.walk()) if entry is not None else []
        name = item.child_key or item.source.value
        if any(part.gc_policy is GCPolicy.LOCKED and part.tokens for part in parts):
            yield f"'{name}' is locked and cannot be removed"
        elif any(message_id in kept for part in parts for message_id in part.message_ids):
            yield f"'{name}' is removed but its messages stay"


def apply_beside(declared: Sequence[GCRemovalItem], budget: InstructionBudget) -> None:
    """Remove from the budget what is sent alongside the messages."""
    for item in declared:
        if item.child_key is None:
            budget.clear(item.source)
        elif is_beside_messages(item, budget):
            budget.remove_child(item.source, item.child_key)


def left_beside(
    declared: Sequence[GCRemovalItem], budget: InstructionBudget
) -> tuple[tuple[str, str], ...]:
    """Return what `apply_beside` would remove: the source and the key of each child."""
    found: list[tuple[str, str]] = []
    for item in declared:
        entry = budget.get_entry(item.source)
        if item.child_key is None and entry is not None:
            own = [key for key, child in entry.children.items() if not child.message_ids]
            found += [(item.source.value, key) for key in own]
        elif item.child_key is not None and is_beside_messages(item, budget):
            found.append((item.source.value, item.child_key))
    return tuple(found)


def is_beside_messages(item: GCRemovalItem, budget: InstructionBudget) -> bool:
    """Return whether an item is a whole source, or a child that is sent alongside the messages."""
    if item.child_key is None:
        return True
    child = budget.get_child(item.source, item.child_key)
    return child is not None and not child.message_ids


def _booked(item: GCRemovalItem, budget: InstructionBudget) -> int:
    entry = (
        budget.get_entry(item.source)
        if item.child_key is None
        else budget.get_child(item.source, item.child_key)
    )
    return 0 if entry is None else entry.total_tokens()


def _of_message(
    message_id: str, tokens: int, known: GCRemovalItem | None, otherwise: str
) -> GCRemovalItem:
    return GCRemovalItem(
        source=InstructionSource.CONVERSATION if known is None else known.source,
        child_key=message_id,
        tokens_freed=tokens,
        reason=otherwise if known is None else known.reason,
        evidence=None if known is None else known.evidence,
        message_ids=(message_id,),
    )
