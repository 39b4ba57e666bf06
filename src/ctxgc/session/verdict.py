"""The verdict on what a plugin returned: what changed, and whether that may be applied.

A plugin is other people's code. Whatever it returns, a session is never left with an invalid history,
a lost message or a missing pin: such a result is refused and the history stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from ctxgc.core.message import Message
from ctxgc.core.unchanged import unchanged
from ctxgc.invariants import check
from ctxgc.invariants.pairs import Paired
from ctxgc.invariants.verbatim import changed_thinking
from ctxgc.session.alike import tools_of
from ctxgc.strategies.base import GCResult


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """How a new history differs from the old one."""

    gone: list[Message]
    edited: list[tuple[Message, Message]]
    added: list[Message]

    def __bool__(self) -> bool:
        return bool(self.gone or self.edited or self.added)


def compare(old: Sequence[Message], new: Sequence[Message]) -> Change:
    """Return what left, what was edited (same id, other content) and what came in."""
    old, new = _without_same(old, new)
    before = {message.message_id: message for message in old}
    after = {message.message_id: message for message in new}
    return Change(
        gone=[m for m in old if m.message_id not in after],
        edited=[
            (before[m.message_id], m)
            for m in new
            if m.message_id in before and before[m.message_id] is not m
            and before[m.message_id].data != m.data
        ],
        added=[m for m in new if m.message_id not in before],
    )  # fmt: skip


def _without_same(
    old: Sequence[Message], new: Sequence[Message]
) -> tuple[Sequence[Message], Sequence[Message]]:
    """Return both histories without messages that stand in the same place of both as they were."""
    start = unchanged(old, new)
    old, new = old[start:], new[start:]
    if len(old) != len(new):
        return old, new
    pairs = [(a, b) for a, b in zip(old, new, strict=True) if a is not b]
    return [a for a, _ in pairs], [b for _, b in pairs]


def objections(
    old: Paired,
    new: Sequence[Message],
    declared: GCResult | None,
    *,
    change: Change,
    must_stay: Mapping[str, str],
    tokens: Callable[[Message], int],
) -> list[str]:
    """Return why a new history may not be applied; empty when it may.

    Args:
        old: the history before.
        new: the history that the plugin returned.
        declared: what the plugin says it did; None when it could not say (S3's form).
        change: how the new history differs from the old one.
        must_stay: ids of messages that no plugin may take out or edit, with the reason.
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
    if _has_grown(*_without_same(old, new), tokens):
        found.append("the history grew")
    return found


def _paired_like(old: Paired, new: Sequence[Message], change: Change) -> Paired:
    """Return the new history; where only texts changed, its results answer the same calls as before."""
    history = Paired(new)
    same = all(tools_of(before) == tools_of(after) for before, after in change.edited)
    if same and not change.gone and not change.added:
        history.pairing = old.pairing
    return history


def _has_grown(
    old: Sequence[Message], new: Sequence[Message], tokens: Callable[[Message], int]
) -> bool:
    """Tell whether the messages that stand in one history only have more tokens in the new one."""
    before, after = set(map(id, old)), set(map(id, new))
    gone = sum([tokens(message) for message in old if id(message) not in after])
    return sum([tokens(message) for message in new if id(message) not in before]) > gone


def _lost_order(old: Sequence[Message], new: Sequence[Message]) -> list[str]:
    ids, old_ids = [m.message_id for m in new], [m.message_id for m in old]
    kept = set(ids)
    if len(kept) != len(ids):
        return ["a message stands twice in the new history"]
    if ids == old_ids:
        return []
    before = set(old_ids)
    expected = [message_id for message_id in old_ids if message_id in kept]
    return [] if expected == [i for i in ids if i in before] else ["the order of messages changed"]


def _named(history: Sequence[Message], ids: Collection[str]) -> dict[str, str]:
    """Return these messages by their ids: each with its place, its role and its id in words."""
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
