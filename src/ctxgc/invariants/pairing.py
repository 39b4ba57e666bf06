"""What a promise about a view looks like, and which result answers which call.

Calls and results are paired by position and id, never by a map of ids over all messages: some providers
use an id again in a later turn. A result therefore answers the nearest earlier call of its id that is
still open.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec

from ctxgc.core import FORMATS, Format, Message, Part

# -- The provider's own object of a part


def block_of(message: Message, part: Part) -> Any:
    """Return the provider's object for a part, as it is in the message."""
    return at(message.data, part.path)


def at(data: Any, path: Sequence[str | int]) -> Any:
    """Return what is at a path of keys and indices."""
    for step in path:
        data = data[step]
    return data


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One broken promise: where, in plain and in the provider's words, and what repair would do.

    `pending` marks what is legal while the turn still runs: a call at the very end that waits for
    its result.
    """

    promise: str
    index: int
    message_id: str
    text: str
    provider_error: str
    fix: str
    call_id: str | None = None
    pending: bool = False


class Invariant(ABC):
    """One promise about the messages of a view; planner, checker and tests share the object."""

    id: ClassVar[str]
    sentence: ClassVar[str]
    formats: ClassVar[tuple[Format, ...]] = FORMATS

    @abstractmethod
    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return every breach in the order of the messages, the pending ones among them."""

    def check(self, messages: Sequence[Message], *, complete: bool = True) -> list[Violation]:
        """Return the breaches of a history that is about to be sent.

        With `complete=False` the turn still runs: what is pending at its very end is not a breach.
        """
        return [breach for breach in self.breaches(messages) if complete or not breach.pending]

    def cuts(self, messages: Sequence[Message]) -> frozenset[int]:
        """Return the positions at which a history that keeps the promise falls into two that do.

        Position `i` is between `messages[i - 1]` and `messages[i]`.
        """
        return frozenset(range(len(messages) + 1))


class SingleInvariant(Invariant):
    """A promise that each message keeps by itself, so that what was looked at once stays kept."""

    def breaches(self, messages: Sequence[Message]) -> list[Violation]:
        """Return every breach in the order of the messages."""
        return self.breaches_among(messages, range(len(messages)))

    @abstractmethod
    def breaches_among(
        self, messages: Sequence[Message], indices: Iterable[int]
    ) -> list[Violation]:
        """Return every breach of the messages at these places."""


def positions_outside(spans: Iterable[tuple[int, int]], length: int) -> frozenset[int]:
    """Return the positions `0..length` inside no span; a span is its first and last message."""
    steps = [0] * (length + 2)
    for first, last in spans:
        steps[first + 1] += 1
        steps[last + 1] -= 1
    free, depth = [], 0
    for position in range(length + 1):
        depth += steps[position]
        if depth == 0:
            free.append(position)
    return frozenset(free)


class Ref(NamedTuple):
    """A part of a message by its place."""

    message: int
    part: int
    call_id: str | None


class Batch:
    """The calls that the model made in one breath, with their results.

    `first` and `last` are the messages of the model's answer that holds the calls.
    """

    __slots__ = ("answers", "calls", "first", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self.calls: list[Ref] = []
        self.answers: dict[Ref, Ref] = {}

    def open_calls(self) -> list[Ref]:
        """Return the calls without a result."""
        if len(self.answers) == len(self.calls):
            return []
        return [call for call in self.calls if call not in self.answers]

    def span(self) -> tuple[int, int]:
        """Return the first and the last message that belong to the batch."""
        return self.first, max((ref.message for ref in self.answers.values()), default=self.last)


class Pairing:
    """All batches of a history, and what is left over.

    `has_server_tools` says that the provider ran tools too; those are not matched here.
    """

    __slots__ = ("batches", "extras", "has_server_tools", "orphans", "referenced", "repeats")

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.orphans: list[Ref] = []
        self.extras: list[Ref] = []
        self.repeats: list[Ref] = []
        self.referenced: list[tuple[int, Ref]] = []
        self.has_server_tools = False

    def pairs(self) -> Iterator[tuple[Ref, Ref]]:
        """Yield each answered call with its result."""
        for batch in self.batches:
            yield from batch.answers.items()


def answers(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Return the model's answers as spans of first and last message.

    An OpenAI message is one answer. Anthropic reads consecutive assistant messages as one. The
    Responses format spreads an answer over items: a new one begins after anything that the model
    did not write, and at a reasoning item that follows another kind of item.
    """
    spans: list[tuple[int, int]] = []
    before: Message | None = None
    for index, message in enumerate(messages):
        if message.role == "system" and message.format == "anthropic":
            continue
        if message.role == "assistant":
            if message.format != "openai" and before is not None and _continues(before, message):
                spans[-1] = (spans[-1][0], index)
            else:
                spans.append((index, index))
        before = message
    return spans


def _continues(before: Message, message: Message) -> bool:
    if before.role != "assistant":
        return False
    return message.format == "anthropic" or not is_thinking(message) or is_thinking(before)


def is_thinking(message: Message) -> bool:
    """Return whether a message holds nothing but thinking."""
    return bool(message.parts) and all(part.kind == "thinking" for part in message.parts)


class Paired(list[Message]):
    """A history whose calls and results are matched once, for all invariants."""

    @cached_property
    def pairing(self) -> Pairing:
        """The matched calls and results."""
        return _pair(self)


def pair(messages: Sequence[Message]) -> Pairing:
    """Match the calls and results of a history in one pass."""
    return messages.pairing if isinstance(messages, Paired) else _pair(messages)


def is_chat(messages: Sequence[Message]) -> bool:
    """Return whether a history is one of OpenAI's chat, in which each answer is one message."""
    return {message.format for message in messages} == {"openai"}


def _pair(messages: Sequence[Message]) -> Pairing:
    matcher = Matcher(None if is_chat(messages) else _spans(messages))
    for message in messages:
        matcher.take(message)
    return matcher.pairing


_Span: TypeAlias = tuple[int, int]


def _spans(messages: Sequence[Message]) -> dict[int, _Span]:
    return {index: span for span in answers(messages) for index in range(span[0], span[1] + 1)}


def is_reference(message: Message) -> bool:
    """Return whether a message only names an item that the provider keeps; its type may be left out."""
    return bool(message.parts) and _names_item(message.parts[0])


def _names_item(part: Part) -> bool:
    return part.kind == "other" and part.name == "item_reference"


def may_stay_open(message: Message) -> bool:
    """Return whether the call of a message needs no result yet: Responses has asynchronous tools."""
    return message.format == "responses" and message.data.get("async") is True


def tool_channel(message: Message) -> str:
    """Return the kind of tool: Responses wants a function's result for a function's call.

    Local shells are answered in either way.
    """
    if message.format != "responses":
        return ""
    kind = str(message.data.get("type")).removesuffix("_output").removesuffix("_call")
    return "function" if kind == "local_shell" else kind


_Key: TypeAlias = tuple[str, str | None]


class Matcher:
    """Matches calls and results message by message, in the order of the history.

    `spans` are the answers that messages belong to, by place; None in OpenAI's chat.
    """

    __slots__ = ("_count", "_open", "_reference", "_spans", "_used", "pairing")

    def __init__(self, spans: dict[int, _Span] | None = None) -> None:
        self.pairing = Pairing()
        self._spans = spans
        self._count = 0
        self._reference: int | None = None
        self._open: dict[_Key, list[tuple[Batch, Ref]]] = {}
        self._used: dict[_Key, Batch] = {}

    def take(self, message: Message) -> list[Batch]:
        """Match the parts of the next message, and return the batches that it answers."""
        index, answered = self._count, []
        self._count += 1
        if self._spans is not None and is_reference(message):
            self._reference = index
        for place, part in enumerate(message.parts):
            kind, call_id = part.kind, part.call_id
            if part.server_side:
                self.pairing.has_server_tools = True
            elif kind == "tool_result":
                batch = self._answer(Ref(index, place, call_id), (tool_channel(message), call_id))
                if batch is not None:
                    answered.append(batch)
            elif kind == "tool_call" and (span := self._span(index, message)) is not None:
                self._call(Ref(index, place, call_id), (tool_channel(message), call_id), span)
        return answered

    def _span(self, index: int, message: Message) -> _Span | None:
        """Return the answer that a message is part of; None when the model did not write it."""
        if self._spans is not None:
            return self._spans.get(index)
        return (index, index) if message.role == "assistant" else None

    def _call(self, ref: Ref, key: _Key, span: _Span) -> None:
        batches = self.pairing.batches
        if not batches or batches[-1].first != span[0]:
            batches.append(Batch(*span))
        batch = batches[-1]
        if self._used.get(key) is batch:
            self.pairing.repeats.append(ref)
            return
        self._used[key] = batch
        batch.calls.append(ref)
        known = self._open.get(key)
        if known is None:
            self._open[key] = [(batch, ref)]
        else:
            known.append((batch, ref))

    def _answer(self, ref: Ref, key: _Key) -> Batch | None:
        waiting = self._open.get(key)
        if waiting:
            batch, call = waiting.pop()
            batch.answers[call] = ref
            return batch
        if waiting is not None:
            self.pairing.extras.append(ref)
        elif self._reference is not None:
            self.pairing.referenced.append((self._reference, ref))
        else:
            self.pairing.orphans.append(ref)
        return None
