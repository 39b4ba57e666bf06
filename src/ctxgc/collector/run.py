"""One collection of a history: what it may touch, how far it has to go, and the draft it works on.

`HistoryDraft` is a history from which messages leave and in which others change. `CollectionRun` is one
collection: its target, what may leave together and what must stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import blake2b
from typing import Any

from ctxgc.budget import InstructionBudget, InstructionSource
from ctxgc.collector.booking import Booking
from ctxgc.collector.host import Host, TurnSpan, root_messages, turn_ids, turns_of, with_groups
from ctxgc.collector.result import GCRemovalItem, GCTriggerReason
from ctxgc.config import GCConfig
from ctxgc.core import Evidence, Format, Message
from ctxgc.invariants import positions_outside

# -- The draft


class HistoryDraft:
    """A history from which messages leave, and in which others change or come in.

    `tokens` is what the context holds now. Each message that left or shrank has one removal item.
    """

    def __init__(self, history: list[Message], tokens: int, booking: Booking) -> None:
        self.before = list(history)
        self.tokens = tokens
        self._tokens_before = tokens
        self._booking = booking
        self._count = booking.tokens
        self._now: dict[str, Message | None] = {m.message_id: m for m in history}
        self._size: dict[str, int] = {}
        self._items: dict[str, GCRemovalItem] = {}
        self._cleared: list[GCRemovalItem] = []
        self._inserted: dict[str, list[Message]] = {}
        self.added: list[Message] = []
        self.has_removed = False

    def size(self, message_id: str) -> int:
        """Return the tokens that a message of the draft has now; none when it left."""
        message = self._now[message_id]
        if message is None:
            return 0
        size = self._size.get(message_id)
        if size is None:
            size = self._size[message_id] = self._count(message)
        return size

    @property
    def freed(self) -> int:
        """The tokens that the context holds less than before."""
        return self._tokens_before - self.tokens

    def get(self, message_id: str) -> Message | None:
        """Return a message as it is in the draft; None if it left."""
        return self._now[message_id]

    def remove(self, message_id: str, evidence: Evidence, reason: str = "") -> None:
        """Take a message out; `reason` is the word that S2 has for it."""
        self._book(message_id, self.size(message_id), evidence, reason)
        self._now[message_id] = None
        self.has_removed = True

    def remove_all(self, message_ids: Iterable[str], evidence: Evidence, reason: str = "") -> None:
        """Take several messages out for the same reason."""
        for message_id in message_ids:
            if self._now[message_id] is not None:
                self.remove(message_id, evidence, reason)

    def replace(self, message: Message, evidence: Evidence) -> None:
        """Put a smaller message in the place of the one with its id."""
        size = self._count(message)
        self._book(message.message_id, self.size(message.message_id) - size, evidence)
        self._now[message.message_id] = message
        self._size[message.message_id] = size

    def clear(self, item: GCRemovalItem) -> None:
        """Clear a source or a child of the budget: its messages leave, and what it held besides is freed."""
        here = [i for i in item.message_ids if self._now.get(i) is not None]
        held = sum(map(self.size, here))
        for message_id in here:
            self.remove(message_id, item.evidence or Evidence(kind="policy", how=item.reason))
            del self._items[message_id]
        self.tokens -= item.tokens_freed - held
        self._cleared.append(item)

    def insert(self, message: Message, before: str | None) -> None:
        """Put a new message in front of another's place, even if that one left; None: at the end."""
        self._inserted.setdefault(before or "", []).append(message)
        self.added.append(message)
        self.tokens += self._count(message)

    def withdraw(self, message: Message) -> None:
        """Take a new message back that was put in before."""
        self.added.remove(message)
        for inserted in self._inserted.values():
            inserted[:] = [m for m in inserted if m is not message]
        self.tokens -= self._count(message)

    def renew(self, message: Message, other: Message) -> None:
        """Put another new message where one was put in before."""
        self.added[self.added.index(message)] = other
        for inserted in self._inserted.values():
            inserted[:] = [other if m is message else m for m in inserted]
        self.tokens += self._count(other) - self._count(message)

    def history(self) -> list[Message]:
        """Return the new history."""
        result: list[Message] = []
        for old in self.before:
            result.extend(self._inserted.get(old.message_id, ()))
            now = self._now[old.message_id]
            if now is not None:
                result.append(now)
        return [*result, *self._inserted.get("", ())]

    def items(self) -> list[GCRemovalItem]:
        """Return what left or shrank, as the budget names it, in the order of the history."""
        moved = [self._items[m.message_id] for m in self.before if m.message_id in self._items]
        return [*self._cleared, *self._booking.items(moved, lambda i: self._now[i] is None)]

    def has_only(self, evidence: Evidence) -> bool:
        """Return whether nothing left or shrank for any other reason."""
        items = (*self._cleared, *self._items.values())
        return all(item.evidence == evidence for item in items)

    def removed(self) -> list[Message]:
        """Return the messages that left, as they were."""
        return [m for m in self.before if self._now[m.message_id] is None]

    def _book(self, message_id: str, freed: int, evidence: Evidence, reason: str = "") -> None:
        known = self._items.get(message_id)
        self._items[message_id] = GCRemovalItem(
            source=_source(self._now[message_id]),
            child_key=message_id,
            tokens_freed=freed + (known.tokens_freed if known else 0),
            reason=reason or str(evidence),
            message_ids=(message_id,),
            evidence=evidence,
        )
        self.tokens -= freed


def _source(message: Message | None) -> InstructionSource:
    if message is not None and message.role == "system":
        return InstructionSource.SYSTEM
    return InstructionSource.CONVERSATION


# -- The collection


_NOTICE_ROOM = 48
OLD_NOTICE = Evidence(kind="notice")


class CollectionRun:
    """One collection: the draft, its target, its turns and groups, and what must stay.

    Notices of earlier collections are taken out first: there is never more than one. `digest` is what
    the notice of this one adds: handles and lines of what left.
    """

    def __init__(
        self,
        history: list[Message],
        *,
        usage: Mapping[str, Any],
        config: GCConfig,
        reason: GCTriggerReason,
        budget: InstructionBudget | None,
        host: Host,
        preserve: int,
    ) -> None:
        self.history = list(history)
        self.usage = usage
        self.config = config
        self.reason = reason
        self.budget = budget
        self.host = host
        self.preserve = preserve
        self.details: dict[str, Any] = {}
        self.digest = ""
        self.digest_tokens = 0
        self.draft = self._fresh_draft()
        self.target: int = usage.get("target_tokens", self._target_of(config))
        self.is_due_by_size = self.draft.tokens > self.target

    @property
    def format(self) -> Format:
        """The wire format of the history."""
        return self.history[0].format if self.history else "openai"

    @property
    def excess(self) -> int:
        """The tokens that are still above the target; zero or less when it is met.

        Once a message left, the note about it needs its room too.
        """
        room = _NOTICE_ROOM if self.draft.has_removed else 0
        return self.draft.tokens + self.digest_tokens - self.target + min(room, self.target // 10)

    @property
    def turns_over(self) -> int:
        """How many turns of the draft are above the limit of turns."""
        limit = self.config.max_turns
        return 0 if limit is None else max(0, self._requests_now() - limit)

    @property
    def excess_turns(self) -> int:
        """How many turns have to go: more than are above the limit, or the next turn would be again."""
        limit, config = self.config.max_turns, self.config
        if limit is None or self._requests_before <= limit:
            return 0
        wanted = int(limit * config.target_percent / config.threshold_percent)
        return max(0, self._requests_now() - min(limit, max(1, wanted)))

    @property
    def above_hard_limit(self) -> bool:
        """Whether the context is so full that it must shrink, whatever that costs."""
        if self.reason is GCTriggerReason.CONTEXT_LIMIT:
            return True
        limit = self.usage.get("context_limit", 0)
        return bool(self.draft.tokens > limit * self.config.hard_limit_percent / 100)

    @property
    def is_forced(self) -> bool:
        """Whether the caller asked for this very target."""
        forced = self.reason in (GCTriggerReason.MANUAL, GCTriggerReason.CONTEXT_LIMIT)
        return forced or self.target < self._target_of(self.config)

    @property
    def under_pressure(self) -> bool:
        """Whether even preservable content may go."""
        pressure = self.config.pressure_percent
        if self.reason is GCTriggerReason.CONTEXT_LIMIT:
            return not self.config.continuous
        return bool(pressure) and self.usage.get("percent_used", 0.0) >= (pressure or 0.0)

    @cached_property
    def turns(self) -> list[TurnSpan]:
        """The turns of the history."""
        return turns_of(self.history, self.groups)

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """The places of the messages that live and die together, oldest first."""
        return self.booking.tie(self.host.groups(self.history))

    @cached_property
    def booking(self) -> Booking:
        """Where the budget has the messages of the history."""
        count, groups = self.host.message_tokens, self.host.groups
        return Booking(
            self.history,
            self.budget,
            count,
            lambda: turn_ids(self.history, groups(self.history)),
        )

    @cached_property
    def untouchable(self) -> frozenset[str]:
        """The messages that may not even be edited."""
        pinned = self.usage.get("pinned_message_ids", ())
        rules = root_messages(self.history, pinned, self.budget)
        return frozenset(message_id for _, kept in rules for message_id in kept)

    @cached_property
    def roots(self) -> set[str]:
        """What every strategy keeps: the untouchable, and what is bound to it."""
        return with_groups(self.history, self.untouchable, self.groups)

    @cached_property
    def protected(self) -> set[str]:
        """What a strategy of turns keeps: the roots, recent and pinned turns, earlier summaries."""
        keep = {*self.untouchable, *(message.message_id for message in self.old_notices())}
        for turn in self.turns:
            is_recent = turn.index >= len(self.turns) - self.preserve
            if is_recent or turn.index in self.config.pinned_turn_indices:
                keep.update(self.ids(turn.places()))
        if not self.under_pressure:
            keep.update(m.message_id for m in self.history if m.origin == "gc_summary")
        return with_groups(self.history, keep, self.groups)

    def is_due(self) -> bool:
        """Return whether there is anything to do at all."""
        return self.is_due_by_size or (
            self.reason is GCTriggerReason.TURN_LIMIT and self.excess_turns > 0
        )

    def old_notices(self) -> list[Message]:
        """Return the notices of earlier collections, but those that may not be touched."""
        return [
            m
            for m in self.history
            if m.origin == "gc_notice" and m.message_id not in self.untouchable
        ]

    def ids(self, places: range | tuple[int, ...]) -> list[str]:
        """Return the ids of the messages at these places."""
        return [self.history[place].message_id for place in places]

    def free_ids(self, places: range | tuple[int, ...]) -> list[str]:
        """Return the ids at these places that are neither protected nor gone."""
        return [
            message_id
            for message_id in self.ids(places)
            if message_id not in self.protected and self.draft.get(message_id) is not None
        ]

    def requests_in(self, message_ids: Iterable[str]) -> int:
        """Return how many of these messages, as they are in the draft, open a turn."""
        return sum(m is not None and m.opens_turn() for m in map(self.draft.get, message_ids))

    def release_recent_turns(self) -> None:
        """Protect the newest turns no longer: there may be fewer than they are."""
        self.preserve = 0
        self.__dict__.pop("protected", None)

    def place_near(self, message_id: str) -> str | None:
        """Return the message before which something new may be put: this one, or the next possible.

        Within an answer it would separate calls from their results. None: at the end.
        """
        ids = [message.message_id for message in self.history]
        free = positions_outside(((g[0], g[-1]) for g in self.groups), len(ids))
        place = next(n for n in range(ids.index(message_id), len(ids) + 1) if n in free)
        return ids[place] if place < len(ids) else None

    def notice_id(self) -> str:
        """Return an id for the notice of this collection: the same for the same work."""
        seed = "\n".join(message.message_id for message in self.draft.removed())
        return f"gc_notice_{blake2b(seed.encode(), digest_size=6).hexdigest()}"

    def left(self) -> list[Message]:
        """Return the messages that left, other than old notices."""
        return [m for m in self.draft.removed() if m.origin != "gc_notice"]

    def forget_vain_work(self) -> None:
        """Start over if only old notices left and that reached nothing: they may as well stay."""
        only_notices = self.draft.has_only(OLD_NOTICE)
        if only_notices and not (self.is_due_by_size and self.draft.tokens <= self.target):
            self.draft = self._fresh_draft()

    @cached_property
    def _requests_before(self) -> int:
        return sum(message.opens_turn() for message in self.history)

    def _requests_now(self) -> int:
        return self.requests_in(message.message_id for message in self.history)

    def _fresh_draft(self) -> HistoryDraft:
        tokens = self.booking.total()
        if tokens is None:
            tokens = self.usage.get("total_tokens")
        if tokens is None:
            tokens = sum(map(self.host.message_tokens, self.history))
        return HistoryDraft(self.history, tokens, self.booking)

    def _target_of(self, config: GCConfig) -> int:
        limit = self.usage.get("context_limit") or (self.budget.context_limit if self.budget else 0)
        return int(limit * config.target_percent / 100)
