"""Essentials: what of a view stays when almost nothing fits."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ctxgc.core.message import Message
from ctxgc.core.tombstone import is_tombstone
from ctxgc.invariants import groups
from ctxgc.strategies.turns import opens_turn

LAST_GROUPS = 2


def minimal_view(messages: Sequence[Message], kept: Collection[str]) -> list[Message]:
    """Return instructions, pins, the first and the last request, and the work done last."""
    return whole_groups(messages, {*_always(messages, kept), *_last(messages, LAST_GROUPS)})


def bare_view(messages: Sequence[Message], kept: Collection[str]) -> list[Message]:
    """Return the absolute essentials: the minimal view with only the very last step of the work.

    The last error stays too, when there is one.
    """
    return whole_groups(
        messages, {*_always(messages, kept), *_last(messages, 1), *_last_error(messages)}
    )


def _always(messages: Sequence[Message], kept: Collection[str]) -> set[str]:
    requests = [m.message_id for m in messages if opens_turn(m)]
    system = [m.message_id for m in messages if m.role == "system"]
    return {*system, *requests[:1], *requests[-1:], *kept}


def _last(messages: Sequence[Message], count: int) -> set[str]:
    newest = sorted(groups(messages), key=max)[-count:]
    return {messages[place].message_id for group in newest for place in group}


def _last_error(messages: Sequence[Message]) -> set[str]:
    for message in reversed(messages):
        for part in message.parts:
            if part.is_error and not is_tombstone(part.text):
                return {message.message_id}
    return set()


def whole_groups(messages: Sequence[Message], wanted: set[str]) -> list[Message]:
    """Return the wanted messages, each with its whole group."""
    stay: set[str] = set()
    for group in groups(messages):
        ids = [messages[place].message_id for place in group]
        if not wanted.isdisjoint(ids):
            stay.update(ids)
    return [message for message in messages if message.message_id in stay]
