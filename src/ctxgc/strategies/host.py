"""Host: the services of a session that a built-in strategy uses, and a stand-in without a session."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ctxgc.config import GCConfig
from ctxgc.core import GCState, Message, RootKnobs
from ctxgc.economics import PriceSheet, price_sheet
from ctxgc.invariants import groups
from ctxgc.strategies.segmenter import Segmenter
from ctxgc.tokens import CountingCache, TokenCounter, counter_for, message_tokens
from ctxgc.wire import PartTexts


class Host(Protocol):
    """The services of a session that a built-in strategy works with."""

    @property
    def counter(self) -> TokenCounter:
        """Counts tokens."""
        ...

    @property
    def prices(self) -> PriceSheet:
        """The price sheet that decisions are weighed with."""
        ...

    @property
    def model(self) -> str | None:
        """The model that the view is sent to, if known."""
        ...

    @property
    def recall_call(self) -> str | None:
        """How the model recalls a handle, with `{handle}` in it; None when it cannot."""
        ...

    @property
    def texts(self) -> PartTexts:
        """What the parts of the history say."""
        ...

    def message_tokens(self, message: Message) -> int:
        """Return the tokens of a message."""
        ...

    def next_summary_id(self) -> str:
        """Return a summary's id that was never used before."""
        ...

    def gc_state(self, history: list[Message]) -> GCState:
        """Return the heap of this history with task, active file and time."""
        ...

    def groups(self, history: list[Message]) -> list[tuple[int, ...]]:
        """Return the places of the messages that live and die together, oldest first."""
        ...

    def segment_ids(self, message_id: str) -> tuple[str, ...]:
        """Return the segments of a message, one for each of its parts."""
        ...

    def handle(self, segment_id: str) -> str:
        """Return the handle that will recall a segment once it is stashed."""
        ...


def root_knobs(config: GCConfig) -> RootKnobs:
    """Return how far the root rules reach by a configuration."""
    return RootKnobs(
        recent_messages=config.recent_messages,
        recent_user_messages=config.recent_user_messages,
        decision_window_seconds=config.decision_window_seconds,
        recent_files=config.recent_files,
    )


@runtime_checkable
class Bindable(Protocol):
    """A strategy that uses the services of its session."""

    def bind(self, host: Host) -> None:
        """Take the session's services."""
        ...


class StandaloneHost:
    """The services for a strategy without a session: no stash, so no handles."""

    recall_call: str | None = None
    model: str | None = None

    def __init__(self) -> None:
        self.counter: TokenCounter = CountingCache(counter_for(None))
        self.prices = price_sheet("none")
        self.texts = PartTexts()
        self._summaries = 0
        self._segmenter = Segmenter(self.counter)

    def message_tokens(self, message: Message) -> int:
        """Return the tokens of a message."""
        return message_tokens(message, self.counter)

    def next_summary_id(self) -> str:
        """Return `gc_summary_1`, then `gc_summary_2`, and so on."""
        self._summaries += 1
        return f"gc_summary_{self._summaries}"

    def gc_state(self, history: list[Message]) -> GCState:
        """Return a heap made from this history alone."""
        self._segmenter = Segmenter(self.counter)
        for message in history:
            self._segmenter.take(message)
        return GCState(heap=self._segmenter.heap, now=self._segmenter.now)

    def groups(self, history: list[Message]) -> list[tuple[int, ...]]:
        """Return the places of the messages that live and die together, oldest first."""
        return sorted(groups(history))

    def segment_ids(self, message_id: str) -> tuple[str, ...]:
        """Return the segments of a message of the history last given to `gc_state`."""
        return self._segmenter.segment_ids(message_id)

    def handle(self, segment_id: str) -> str:  # noqa: ARG002 - nothing can be recalled here
        """Return no handle: there is no stash."""
        return ""
