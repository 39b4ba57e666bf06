"""What a built-in strategy asks of its session (`Host`), and which messages it may never take out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource
from ctxgc.collector.segmenter import Segmenter
from ctxgc.config import GCConfig
from ctxgc.core import EngineOptions, GCState, Message, RootKnobs, is_tombstone, recall_call
from ctxgc.economics import PriceSheet, price_sheet
from ctxgc.invariants import groups, positions_outside
from ctxgc.tokens import CountingCache, TokenCounter, counter_for, message_tokens
from ctxgc.wire import PartTexts

# -- Turns, and the messages that no strategy may take out


class TurnSpan(msgspec.Struct, frozen=True):
    """One turn: its number and the places of its messages in the history."""

    index: int
    start: int
    stop: int

    def places(self) -> range:
        """Return the places of its messages."""
        return range(self.start, self.stop)


def turns_of(history: Sequence[Message], groups: Iterable[tuple[int, ...]]) -> list[TurnSpan]:
    """Return the turns of a history; what comes before the first belongs to none.

    A turn never starts inside a group: a message that also answers a tool call stays with the turn of
    that call.
    """
    legal = positions_outside(((group[0], group[-1]) for group in groups), len(history))
    users = [(i, message) for i, message in enumerate(history) if message.role == "user"]
    starts = [i for i, message in users if message.opens_turn() and i in legal]
    stops = [*starts[1:], len(history)] if starts else []
    return [
        TurnSpan(n, start, stop) for n, (start, stop) in enumerate(zip(starts, stops, strict=True))
    ]


def turn_ids(
    history: Sequence[Message], groups_: Iterable[tuple[int, ...]] | None = None
) -> list[list[str]]:
    """Return the ids of the messages of each turn of a history, without notices and summaries."""
    turns = turns_of(history, groups(history) if groups_ is None else groups_)
    return [
        [m.message_id for m in history[turn.start : turn.stop] if m.origin == "conversation"]
        for turn in turns
    ]


class HistoryFrame(msgspec.Struct, frozen=True):
    """The messages that every view keeps, by their ids: system text, the first and the last request."""

    system: list[str]
    first_request: list[str]
    last_request: list[str]


def frame_of(history: Sequence[Message]) -> HistoryFrame:
    """Return the frame of a history; without a request, its parts for requests are empty."""
    system = [m.message_id for m in history if m.role == "system"]
    requests = [m.message_id for m in history if m.opens_turn()]
    return HistoryFrame(system, requests[:1], requests[-1:])


def with_groups(
    history: Sequence[Message],
    wanted: Collection[str],
    groups_: Iterable[tuple[int, ...]] | None = None,
) -> set[str]:
    """Return the ids of messages with those of their whole groups."""
    stay = set(wanted)
    for group in groups(history) if groups_ is None else groups_:
        ids = [history[place].message_id for place in group]
        if not stay.isdisjoint(ids):
            stay.update(ids)
    return stay


def root_messages(
    history: Sequence[Message],
    pinned: Iterable[str],
    budget: InstructionBudget | None,
    marked: Mapping[str, str] = {},
) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the rules by which messages must stay, each with the messages that it keeps.

    The provider's newest compaction is one of them: what it replaces is nowhere else. `marked` are
    further messages, each with its rule: those that an annotation makes roots.
    """
    frame = frame_of(history)
    yield "instructions", frame.system
    yield "pinned", pinned
    for message_id, rule in marked.items():
        yield rule, (message_id,)
    if budget is not None:
        yield "locked", locked_messages(budget)
    yield "original request", frame.first_request
    yield "last request", frame.last_request or [m.message_id for m in history[-1:]]
    yield "open tool call", _unanswered(history)
    yield "compaction", [m.message_id for m in history if _is_compaction(m)][-1:]


def _is_compaction(message: Message) -> bool:
    """Whether a message holds what the provider made of the history before it."""
    return any(part.kind == "other" and part.name == "compaction" for part in message.parts)


def locked_messages(budget: InstructionBudget) -> Iterator[str]:
    """Yield the messages of the locked children of a budget."""
    for entry in filter(None, map(budget.get_entry, InstructionSource)):
        for child in entry.children.values():
            if child.gc_policy is GCPolicy.LOCKED:
                yield from child.message_ids


def _unanswered(history: Sequence[Message]) -> list[str]:
    """The messages with calls of the last batch, while answers are missing."""
    waiting: dict[str, str] = {}
    for message in history:
        for part in message.parts:
            if part.call_id is None or part.server_side:
                continue
            if part.kind == "tool_call":
                waiting[part.call_id] = message.message_id
            elif part.kind == "tool_result":
                waiting.pop(part.call_id, None)
    return list(waiting.values())


# -- The smallest views, for emergencies


MINIMAL_GROUPS = 2


def minimal_view(messages: Sequence[Message], kept: Collection[str]) -> list[Message]:
    """Return the instructions, `kept`, the first and last request, and the work done last."""
    last = _last_groups(messages, MINIMAL_GROUPS)
    return whole_groups(messages, {*_framed(messages, kept), *last})


def bare_view(messages: Sequence[Message], kept: Collection[str]) -> list[Message]:
    """Return the minimal view with only the very last step of the work, and the last error."""
    last = {*_last_groups(messages, 1), *_last_error(messages)}
    return whole_groups(messages, {*_framed(messages, kept), *last})


def whole_groups(messages: Sequence[Message], wanted: Collection[str]) -> list[Message]:
    """Return the wanted messages, each with its whole group."""
    stay = with_groups(messages, wanted)
    return [message for message in messages if message.message_id in stay]


def _framed(messages: Sequence[Message], kept: Collection[str]) -> set[str]:
    frame = frame_of(messages)
    return {*frame.system, *frame.first_request, *frame.last_request, *kept}


def _last_groups(messages: Sequence[Message], count: int) -> set[str]:
    newest = sorted(groups(messages), key=max)[-count:]
    return {messages[place].message_id for group in newest for place in group}


def _last_error(messages: Sequence[Message]) -> set[str]:
    for message in reversed(messages):
        for part in message.parts:
            if part.is_error and not is_tombstone(part.text):
                return {message.message_id}
    return set()


# -- The services of a session


class Host:
    """The services of a session that a built-in strategy works with.

    By itself it serves where there is no session: without a stash, so no handles.
    """

    def __init__(
        self,
        counter: TokenCounter | None = None,
        prices: PriceSheet | None = None,
        texts: PartTexts | None = None,
        *,
        model: str | None = None,
        recall_call: str | None = None,
    ) -> None:
        self.counter = CountingCache(counter_for(None)) if counter is None else counter
        self.prices = price_sheet("none") if prices is None else prices
        """The price sheet that decisions are weighed with."""
        self.texts = PartTexts() if texts is None else texts
        """What the parts of the history say."""
        self.model = model
        """The model that the view is sent to, if known."""
        self.recall_call = recall_call
        """How the model recalls a handle, with `{handle}` in it; None when it cannot."""
        self._summaries = 0
        self._segmenter = Segmenter(self.counter)

    def message_tokens(self, message: Message) -> int:
        """Return the tokens of a message."""
        return message_tokens(message, self.counter)

    def next_summary_id(self) -> str:
        """Return `gc_summary_N` with a number that was never used before."""
        self._summaries += 1
        return f"gc_summary_{self._summaries}"

    def gc_state(self, history: list[Message]) -> GCState:
        """Return the heap of this history with task, active file and time."""
        self._segmenter = Segmenter(self.counter)
        for message in history:
            self._segmenter.take(message)
        return GCState(heap=self._segmenter.heap, now=self._segmenter.now)

    def groups(self, history: list[Message]) -> list[tuple[int, ...]]:
        """Return the places of the messages that live and die together, oldest first."""
        return sorted(groups(history))

    def segment_ids(self, message_id: str) -> tuple[str, ...]:
        """Return the segments of a message of the history last given to `gc_state`, one for each part."""
        return self._segmenter.segment_ids(message_id)

    def request_of(self, message_id: str) -> int | None:  # noqa: ARG002 - nothing was sent
        """Return the request that first carried a message; None if that is not known."""
        return None

    def handle(self, segment_id: str) -> str:  # noqa: ARG002 - nothing can be recalled here
        """Return the handle that recalls a segment once it is stashed; empty without a stash."""
        return ""


TASK_SHARE = 0.5
"""How much of what a collection leaves the current task may hold; what is older of it can leave."""
LEAST_TASK = 0.1
"""What of that it holds at least, however deep a collection is asked to go."""


def root_knobs(
    config: GCConfig, context_limit: int | None = None, target_tokens: int | None = None
) -> RootKnobs:
    """Return how far the root rules reach by a configuration, in a window and down to a target if given."""
    return RootKnobs(
        task_tokens=None
        if context_limit is None
        else _task_tokens(context_limit * config.target_percent / 100, target_tokens),
        recent_messages=config.recent_messages,
        recent_user_messages=config.recent_user_messages,
        decision_window_seconds=config.decision_window_seconds,
        recent_files=config.recent_files,
    )


def _task_tokens(usual: float, target_tokens: int | None) -> int:
    """The current task holds a share of what a collection leaves: less of a deeper one, never nothing."""
    left = usual if target_tokens is None else max(usual * LEAST_TASK, min(usual, target_tokens))
    return int(left * TASK_SHARE)


def engine_options(config: GCConfig, context_limit: int) -> EngineOptions:
    """Return the options of an engine that follows a configuration."""
    return EngineOptions(
        profile=config.score_profile,
        weights=dict(config.score_weights),
        knobs=root_knobs(config, context_limit),
        context_limit=context_limit,
        soft_limit_percent=config.soft_limit_percent,
        hard_limit_percent=config.hard_limit_percent,
        target_percent=config.target_percent,
        batch=config.batch,
        promote_after=config.promote_after,
        evacuate_min_tokens=config.evacuate_min_tokens,
    )


@runtime_checkable
class Bindable(Protocol):
    """A strategy that uses the services of its session."""

    def bind(self, host: Host) -> None:
        """Take the session's services."""
        ...


def call_that_recalls(host: Host, segment_id: str) -> str:
    """Return the exact call that recalls a segment; empty when the model has no way to."""
    handle = host.handle(segment_id)
    return recall_call(handle, host.recall_call) if host.recall_call and handle else ""
