"""Booking: under which children of a budget the messages of a history are, and removals in those terms.

A session books each message under its own id. Others book whole turns, as S2 does (`turn_3`): such a turn
leaves whole or stays, and is listed once, under its key, with the messages that it held.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from msgspec.structs import replace

from ctxgc.budget import InstructionBudget, InstructionSource, SourceEntry
from ctxgc.collector.result import GCRemovalItem
from ctxgc.core import Message

_TURN = re.compile(r"turn_(\d+)")

Turns = Sequence[Sequence[str]]


class Place(NamedTuple):
    """A child of a budget."""

    source: InstructionSource
    key: str


class Booking:
    """Where each message of a history is booked, what it counts there, and how removals are named.

    `turns` returns the ids of the messages of each turn; it is asked only if turns must be known by number.
    """

    def __init__(
        self,
        history: Sequence[Message],
        budget: InstructionBudget | None,
        count: Callable[[Message], int],
        turns: Callable[[], Turns],
    ) -> None:
        self._history = {message.message_id: message for message in history}
        self._budget = budget
        self._count = count
        self._turns = turns
        self._held = {} if budget is None else dict(_children(budget, self._history, turns))
        self._places: dict[str, list[Place]] = {}
        for place, message_ids in self._held.items():
            for message_id in message_ids:
                self._places.setdefault(message_id, []).append(place)
        self._sizes = self._booked_sizes()

    def entries(self, message_id: str) -> list[SourceEntry]:
        """Return the children that a message is booked under."""
        return [self._entry(place) for place in self._places.get(message_id, ())]

    def total(self) -> int | None:
        """Return the tokens of the whole budget, if it books every message; else None."""
        if self._budget is None or len(self._places) < len(self._history):
            return None
        return self._budget.total_tokens()

    def tokens(self, message: Message) -> int:
        """Return what a message counts: its part of what its children are booked with."""
        booked = self._sizes.get(message.message_id)
        known = self._history.get(message.message_id)
        if booked is None or known is None:
            return self._count(message)
        if message is known:
            return booked
        own = self._count(known)
        size = self._count(message)
        return size if own == booked else round(size * booked / max(own, 1))

    def tie(self, groups: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return groups of places in the history, joined where a child holds messages of several."""
        shared = [ids for ids in self._held.values() if len(ids) > 1]
        if not shared:
            return list(groups)
        place_of = {message_id: place for place, message_id in enumerate(self._history)}
        return _joined([*groups, *(tuple(place_of[i] for i in ids) for ids in shared)])

    def items(
        self, moved: Iterable[GCRemovalItem], left: Callable[[str], bool]
    ) -> Iterator[GCRemovalItem]:
        """Yield removals of single messages as the budget names them: one for each child.

        What the budget does not book keeps the id of its message, or of its turn if there is no budget.
        Notices that it does not book are not its business.
        """
        by_message = {item.message_ids[0]: item for item in moved}
        done: set[Place] = set()
        names = self._turn_names(left) if self._budget is None else {}
        for message_id, item in by_message.items():
            places = self._places.get(message_id, ())
            for place in places:
                if place not in done:
                    done.add(place)
                    yield self._child_item(place, by_message, left)
            if places:
                continue
            turn = names.get(message_id)
            if turn is not None and turn[0] == message_id:
                yield self._turn_item(turn[1], turn[2], by_message)
            elif turn is None and not self._is_foreign_notice(message_id):
                yield item

    def _turn_names(self, left: Callable[[str], bool]) -> dict[str, tuple[str, str, Sequence[str]]]:
        """For each message of a turn that left whole: its first message, its name, all its messages."""
        return {
            message_id: (ids[0], f"turn_{number}", ids)
            for number, ids in enumerate(self._turns())
            if ids and all(map(left, ids))
            for message_id in ids
        }

    def _turn_item(
        self, key: str, ids: Sequence[str], by_message: Mapping[str, GCRemovalItem]
    ) -> GCRemovalItem:
        freed = sum(by_message[message_id].tokens_freed for message_id in ids)
        return replace(
            by_message[ids[0]], child_key=key, tokens_freed=freed, message_ids=tuple(ids)
        )

    def _child_item(
        self, place: Place, by_message: Mapping[str, GCRemovalItem], left: Callable[[str], bool]
    ) -> GCRemovalItem:
        held = self._held[place]
        if held == (place.key,) and (item := by_message[place.key]).source is place.source:
            # Nearly all of a session: one message under its own id.
            booked = self._sizes[place.key]
            is_same = item.tokens_freed == booked or not left(place.key)
            if is_same and len(self._places[place.key]) == 1:
                return item
        parts = [by_message[message_id] for message_id in held if message_id in by_message]
        whole = all(map(left, held))
        freed = sum(part.tokens_freed for part in parts)
        return replace(
            parts[0],
            source=place.source,
            child_key=place.key,
            tokens_freed=self._entry(place).total_tokens() if whole else freed,
            message_ids=tuple(part.message_ids[0] for part in parts),
        )

    def _is_foreign_notice(self, message_id: str) -> bool:
        return self._budget is not None and self._history[message_id].origin == "gc_notice"

    def _booked_sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for place, message_ids in self._held.items():
            booked = self._entry(place).total_tokens()
            for message_id, share in zip(
                message_ids, self._shares(booked, message_ids), strict=True
            ):
                sizes[message_id] = sizes.get(message_id, 0) + share
        return sizes

    def _shares(self, booked: int, message_ids: Sequence[str]) -> list[int]:
        """Divide tokens among messages by their sizes, to the last token."""
        if len(message_ids) == 1:
            return [booked]
        sizes = [self._count(self._history[message_id]) + 1 for message_id in message_ids]
        marks = [booked * upto // sum(sizes) for upto in accumulate(sizes, initial=0)]
        return [after - before for before, after in pairwise(marks)]

    def _entry(self, place: Place) -> SourceEntry:
        entry = None if self._budget is None else self._budget.get_child(*place)
        if entry is None:
            raise KeyError(place)
        return entry


def with_messages(
    items: Sequence[GCRemovalItem], turns: Turns, budget: InstructionBudget
) -> list[GCRemovalItem]:
    """Return removal items with the messages that they mean, where they only name a child or a turn."""
    return [item if item.message_ids else _with_messages(item, turns, budget) for item in items]


def _with_messages(item: GCRemovalItem, turns: Turns, budget: InstructionBudget) -> GCRemovalItem:
    child = budget.get_child(item.source, item.child_key)
    if child is not None:
        return replace(item, message_ids=child.message_ids)
    number = None if item.child_key is None else turn_number(item.child_key)
    if number is None or number >= len(turns):
        return item
    return replace(item, message_ids=tuple(turns[number]))


def turn_number(key: str) -> int | None:
    """Return the number in the name of a turn such as `turn_3`; None if it is not one."""
    found = _TURN.fullmatch(key)
    return None if found is None else int(found[1])


def _children(
    budget: InstructionBudget, history: Mapping[str, Message], turns: Callable[[], Turns]
) -> Iterator[tuple[Place, tuple[str, ...]]]:
    """Yield the children that hold messages of a history, each with those messages."""
    unnamed: dict[int, Place] = {}
    for source in InstructionSource:
        entry = budget.get_entry(source)
        for key, child in entry.children.items() if entry is not None else ():
            ids = tuple(i for i in _named_messages(key, child) if i in history)
            number = turn_number(key)
            if ids:
                yield Place(source, key), ids
            elif number is not None and not child.message_ids:
                unnamed[number] = Place(source, key)
    yield from _by_number(unnamed, turns()) if unnamed and history else ()


def _named_messages(key: str, child: SourceEntry) -> Sequence[str]:
    """The messages that a child names: in its own field, in its metadata, or by its key."""
    if child.message_ids:
        return child.message_ids
    noted = child.metadata.get("message_ids") or child.metadata.get("message_id") or key
    return (noted,) if isinstance(noted, str) else tuple(noted)


def _by_number(
    unnamed: Mapping[int, Place], turns: Turns
) -> Iterator[tuple[Place, tuple[str, ...]]]:
    """Match `turn_N` children that name no messages with the turns of a history, if that is certain."""
    numbers = sorted(unnamed)
    if len(numbers) == len(turns):
        matched = list(zip(numbers, turns, strict=True))
    elif numbers == list(range(len(numbers))) and len(numbers) < len(turns):
        matched = list(zip(numbers, turns, strict=False))
    else:
        matched = []
    for number, ids in matched:
        yield unnamed[number], tuple(ids)


def _joined(groups: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return groups of which no two have a place in common, sorted."""
    of: dict[int, set[int]] = {}
    for group in groups:
        union = set(group).union(*(of[place] for place in group if place in of))
        of.update(dict.fromkeys(union, union))
    return sorted(tuple(sorted(group)) for group in {id(g): g for g in of.values()}.values())
