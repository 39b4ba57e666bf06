"""The messages that live and die together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ctxgc.core.message import Message
from ctxgc.invariants.first import first_spoken
from ctxgc.invariants.follow import ends_in_thinking
from ctxgc.invariants.pairs import answers, is_thinking, pair


def groups(messages: Sequence[Message]) -> list[tuple[int, ...]]:
    """Return the units of a history as ascending indices: each message stands in exactly one.

    A group holds the message(s) that call tools, all results of that batch and the reasoning items
    in front of it. Taking whole groups out of a valid history leaves a valid history, as long as
    the `anchors` stay.
    """
    leaders = list(range(len(messages)))
    for one, other in _bonds(messages):
        _join(leaders, one, other)
    members: dict[int, list[int]] = {}
    for index in range(len(messages)):
        members.setdefault(_leader(leaders, index), []).append(index)
    return [tuple(group) for group in members.values()]


def anchors(messages: Sequence[Message]) -> frozenset[int]:
    """Return the messages that must stay for the history to begin legally (Anthropic)."""
    first = first_spoken(messages)
    if first is None or messages[first].format != "anthropic":
        return frozenset()
    return frozenset(next(group for group in groups(messages) if first in group))


def _bonds(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    pairing = pair(messages)
    for batch in pairing.batches:
        members = [batch.first, *(call.message for call in batch.calls)]
        yield from pairwise(members)
        yield from ((batch.first, result.message) for result in batch.answers.values())
    yield from ((index, result.message) for index, result in pairing.referenced)
    for first, last in answers(messages):
        if is_thinking(messages[first]):
            yield from pairwise(range(first, last + 1))
    for index in range(len(messages) - 1):
        if ends_in_thinking(messages[index]):
            yield index, index + 1


def _leader(leaders: list[int], index: int) -> int:
    while leaders[index] != index:
        leaders[index] = leaders[leaders[index]]
        index = leaders[index]
    return index


def _join(leaders: list[int], one: int, other: int) -> None:
    first, second = _leader(leaders, one), _leader(leaders, other)
    leaders[max(first, second)] = min(first, second)
