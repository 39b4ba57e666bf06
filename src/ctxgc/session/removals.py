"""Removals: the items of a result, brought in line with what really leaves. There is one ledger.

An item is about a whole source, about a child of the budget that no message makes up (a tool schema,
text that the host adds), or about a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource
from ctxgc.core.message import Message
from ctxgc.session.verdict import Change
from ctxgc.strategies.base import GCRemovalItem


def true_items(
    declared: Sequence[GCRemovalItem],
    change: Change,
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
    """Yield what is wrong with items beside messages: they touch what is locked, or what stays."""
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
    """Take off the budget what no message makes up."""
    for item in declared:
        if item.child_key is None:
            budget.clear(item.source)
        elif is_beside_messages(item, budget):
            budget.remove_child(item.source, item.child_key)


def is_beside_messages(item: GCRemovalItem, budget: InstructionBudget) -> bool:
    """Tell whether an item is about a whole source, or a child that no message makes up."""
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
        message_ids=(message_id,),
    )
