"""All promises about a view together: what is broken in it, what lives and dies together, where to cut.

Planner, checker, doctor and tests use these same objects. They read `Message` and `Part` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from ctxgc.core import Format, Message
from ctxgc.invariants.pairing import (
    Invariant,
    Matcher,
    Paired,
    SingleInvariant,
    Violation,
    answers,
    is_chat,
    is_thinking,
    pair,
    positions_outside,
)
from ctxgc.invariants.rules import (
    ArgumentsAreJson,
    CallsAndResultsPair,
    ContentIsPresent,
    ItemsAreUnique,
    OneResultPerCall,
    ResultsFollowTheirBatch,
    ServerToolsPair,
    ThinkingIsFollowed,
    ThinkingIsWhole,
    UserSpeaksFirst,
    awaits_result,
    first_spoken,
    followers,
    owner_of,
    server_pairs,
)

# -- The messages that live and die together


def groups(messages: Sequence[Message]) -> list[tuple[int, ...]]:
    """Return the units of a history as ascending indices: each message is in exactly one.

    A group holds the message(s) that call tools, all results of that batch and the reasoning items
    in front of it. Taking whole groups out of a valid history leaves a valid history, as long as
    the `anchors` stay.
    """
    leaders = list(range(len(messages)))
    for one, other in _bonds(messages):
        if one != other:
            _join(leaders, one, other)
    return _followings(leaders)


def _followings(leaders: list[int]) -> list[tuple[int, ...]]:
    """Return the groups that share a leader, in the order of their first messages.

    A leader is an earlier message of the same group, or the message itself when it is the first.
    """
    members: dict[int, list[int]] = {}
    for index, leader in enumerate(leaders):
        if leader == index:
            members[index] = [index]
        else:
            members[_leader(leaders, leader)].append(index)
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
        first = batch.calls[0].message
        for call, result in batch.answers.items():
            yield first, result.message
            if call.message != first:
                yield first, call.message
        yield from ((first, call.message) for call in batch.open_calls())
    yield from ((index, result.message) for index, result in pairing.referenced)
    if pairing.has_server_tools:
        yield from ((call.message, result.message) for call, result in server_pairs(messages).pairs)
    # In OpenAI's chat an answer is one message, so that no thinking binds it to another.
    if not is_chat(messages):
        yield from _thinking_bonds(messages)
    if pairing.has_server_tools:
        yield from _program_calls(messages)


def _thinking_bonds(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Yield thinking with the rest of its answer, or with what follows it."""
    for first, last in answers(messages):
        if is_thinking(messages[first]):
            yield from (
                (first, index)
                for index in range(first, last + 1)
                if messages[index].role == "assistant"
            )
    yield from ((index, after) for index, after in followers(messages) if after is not None)


def _program_calls(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Yield each program that the provider runs with the calls that it made and their results."""
    programs: dict[str | None, int] = {}
    for index, message in enumerate(messages):
        for part in message.parts:
            owner = owner_of(message, part)
            if owner is not None and owner in programs:
                yield programs[owner], index
            if awaits_result(message, part):
                programs[part.call_id] = index


def _leader(leaders: list[int], index: int) -> int:
    while leaders[index] != index:
        leaders[index] = leaders[leaders[index]]
        index = leaders[index]
    return index


def _join(leaders: list[int], one: int, other: int) -> None:
    """Let two messages, and all that are bound to them, be one group."""
    first, second = _leader(leaders, one), _leader(leaders, other)
    leaders[max(first, second)] = min(first, second)


# -- Groups of a growing history, updated message by message


class HistoryGroups:
    """A history, its pairing and its groups.

    In OpenAI's chat a message is bound to earlier ones only, so that nothing is looked at twice. Other
    formats are read as a whole on demand.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: list[Message] = []
        self._matcher = Matcher()
        self._leaders: list[int] = []
        self._is_chat = True
        self._found: tuple[Paired, list[tuple[int, ...]]] | None = None
        for message in messages:
            self.add(message)

    def __len__(self) -> int:
        return len(self._messages)

    def is_of(self, messages: list[Message]) -> bool:
        """Return whether this is the growing of these messages."""
        return self._messages == messages

    def add(self, message: Message) -> None:
        """Put a message at the end."""
        self._found = None
        self._messages.append(message)
        self._is_chat = self._is_chat and message.format == "openai"
        if not self._is_chat:
            return
        place = len(self._leaders)
        self._leaders.append(place)
        for batch in self._matcher.take(message):
            _join(self._leaders, batch.first, place)

    @property
    def paired(self) -> Paired:
        """The history as it is now, its calls and results matched."""
        return self._look()[0]

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The groups of the history, oldest first."""
        return self._look()[1]

    def _look(self) -> tuple[Paired, list[tuple[int, ...]]]:
        if self._found is None:
            paired = Paired(self._messages)
            if self._is_chat and not self._matcher.pairing.has_server_tools:
                paired.pairing = self._matcher.pairing
                self._found = paired, _followings(self._leaders)
            else:
                self._found = paired, sorted(groups(paired))
        return self._found


ALL_INVARIANTS: tuple[Invariant, ...] = (
    CallsAndResultsPair(),
    OneResultPerCall(),
    ResultsFollowTheirBatch(),
    ServerToolsPair(),
    ArgumentsAreJson(),
    ThinkingIsWhole(),
    ThinkingIsFollowed(),
    UserSpeaksFirst(),
    ContentIsPresent(),
    ItemsAreUnique(),
)


@cache
def for_format(format: Format) -> tuple[Invariant, ...]:  # noqa: A002 - the word of the public face
    """Return the invariants that a provider format asks for."""
    return tuple(invariant for invariant in ALL_INVARIANTS if format in invariant.formats)


def check(
    messages: Sequence[Message], *, complete: bool = True, known: Sequence[Message] = ()
) -> list[Violation]:
    """Return every broken promise of a history in one format, in the order of the messages.

    Args:
        messages: the history.
        complete: False while the turn still runs: what is pending at its very end is not a breach.
        known: a history that keeps its promises. What single messages promise is looked at only for
            those that are not the very same objects there.
    """
    if not messages:
        return []
    paired = messages if isinstance(messages, Paired) else Paired(messages)
    fresh = _fresh(paired, known)
    found: list[Violation] = []
    for invariant in for_format(messages[0].format):
        if isinstance(invariant, SingleInvariant):
            found += invariant.breaches_among(paired, fresh)
        else:
            found += invariant.check(paired, complete=complete)
    return sorted(found, key=lambda violation: violation.index)


def _fresh(messages: Sequence[Message], known: Sequence[Message]) -> Sequence[int]:
    """Return the places of the messages that a known history does not hold as they are."""
    # The last message may be one that is legal nowhere else.
    same = set(map(id, known[:-1]))
    if not same:
        return range(len(messages))
    return [place for place, message in enumerate(messages) if id(message) not in same]


def cuts(messages: Sequence[Message]) -> list[int]:
    """Return the positions at which a history may be cut: no promise broken, no group parted."""
    messages = Paired(messages)
    spans = [(group[0], group[-1]) for group in groups(messages)]
    free = positions_outside(spans, len(messages))
    if messages:
        for invariant in for_format(messages[0].format):
            free &= invariant.cuts(messages)
    return sorted(free)
