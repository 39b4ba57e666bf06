"""The workings of a session: its parts, and how messages come in. It hosts the strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from ctxgc.config import GCConfig
from ctxgc.core.ghosts import Ghosts
from ctxgc.core.heap import Heap
from ctxgc.core.message import Format, Message
from ctxgc.core.roots import GCState
from ctxgc.economics import PriceSheet, SavingsLedger
from ctxgc.guard.thrashing import ThrashBreaker
from ctxgc.guard.zones import Zone, next_zone, zone_of
from ctxgc.session.archive import Archive, arrival_write
from ctxgc.session.books import Books
from ctxgc.session.bound import BoundThinking
from ctxgc.session.events import Events
from ctxgc.session.record import Applied
from ctxgc.session.roomy import thrift_for
from ctxgc.session.secrecy import tell_secrets
from ctxgc.session.stash import Stash
from ctxgc.session.undone import Undone
from ctxgc.session.usage import ContextUsage
from ctxgc.session.view import View
from ctxgc.strategies.base import GCPlugin, GCResult
from ctxgc.strategies.builtin import serving
from ctxgc.strategies.host import root_knobs
from ctxgc.strategies.mark_sweep import MarkSweepStrategy
from ctxgc.strategies.segmenting import Segmenter
from ctxgc.strategies.turns import opens_turn
from ctxgc.thrift import Thrift
from ctxgc.tokens import CountingCache
from ctxgc.wire import binds_thinking
from ctxgc.wire.texts import Texts


class Workings:
    """View, heap, books, stash and archive of one session."""

    def __init__(
        self,
        *,
        context_limit: int,
        config: GCConfig,
        plugin: GCPlugin,
        archive: Archive,
        prices: PriceSheet,
        counter: CountingCache,
        model: str | None,
        recall_call: str | None,
        clock: Callable[[], datetime],
    ) -> None:
        self.config = config
        self.archive = archive
        self.prices = prices
        self.counter = counter
        self.model = model
        self.recall_call = recall_call
        self.clock = clock
        self.view = View()
        self.heap = Heap(counter.count)
        self.books = Books(context_limit, counter, lambda: clock().timestamp())
        self.segmenter = Segmenter(counter, self.heap, clock, marks_secrets=config.secrets != "off")
        self.stash = Stash(self.heap)
        self.texts = Texts()
        self.events = Events(clock)
        self.savings = SavingsLedger(prices, context_limit)
        self.results: list[GCResult] = []
        self.applied: list[Applied] = []
        self.collections = 0
        self.requests = 0
        self.ghosts = Ghosts()
        self.thrashing = ThrashBreaker()
        self.thrash: dict[str, int] = {}
        self.pinned_messages: set[str] = set()
        self.held_until: dict[str, int] = {}
        self.undone = Undone()
        self.bound = BoundThinking()
        self.task_id: str | None = None
        self.task_dependencies: frozenset[str] = frozenset()
        self.active_file: str | None = None
        self.active_range: tuple[int, int] | None = None
        self.summaries = 0
        self.turns_taken = 0
        self.turns_in_view = 0
        self.ingested_tokens = 0
        self.sent_before = 0
        self.sent_messages = 0
        """How many messages of the view the last request carried, as they still are."""
        self.rewrites = 0
        """How often something changed that had been sent."""
        self.sent_at: datetime | None = None
        self.thrift: Thrift | None = None
        self.stuck_at: int | None = None
        self.zone = Zone.SAFE
        self.unsaved: dict[str, None] = {}
        self.plugin = plugin
        self.adopt(plugin)

    def configure(self, config: GCConfig) -> None:
        """Work by another configuration from now on."""
        self.config = config
        self.segmenter.marks_secrets = config.secrets != "off"

    def adopt(self, plugin: GCPlugin) -> None:
        """Let a strategy work for this session."""
        plugin = self.plugin = serving(plugin, self)
        limit = self.books.budget.context_limit
        self.thrift = thrift_for(plugin, limit, self.prices, self.books.tokens, self.texts)

    # -- how messages come in -----------------------------------------------------------------------

    @property
    def format(self) -> Format | None:
        """The format of the session, once a message has come in."""
        return self.view.messages[0].format if self.view.messages else None

    def take(self, message: Message) -> list[str]:
        """Take in a message that may come next, and return its segments."""
        if self.binds_thinking:
            self.bound.note(message, self.view.messages)
        self.view.take(message, self.requests + 1)
        ids = self.segmenter.take(message)
        self.books.enter(message)
        if isinstance(self.plugin, MarkSweepStrategy):
            self.texts.read(message)
        self.ingested_tokens += self.books.tokens(message)
        self._count_turn(message)
        self.unsaved.update(dict.fromkeys(ids))
        self.archive.later(arrival_write(message, **self.arrival(message.message_id)))
        tell_secrets(self.events, map(self.heap.get, ids))
        self.watch()
        return list(ids)

    def take_all(self, messages: Sequence[Message]) -> list[str]:
        """Take in several messages, or none when one of them cannot come next."""
        self.view.check_next(*messages)
        return [segment_id for message in messages for segment_id in self.take(message)]

    def arrival(self, message_id: str, place: float | None = None) -> dict[str, Any]:
        """Return what is stored beside a message: its place, its age, and how it came in."""
        where = self.view.place_of(message_id) if place is None else place
        found: dict[str, Any] = {"place": where, "born": self.books.birth(message_id)}
        found |= self.bound.to_doc(message_id)
        if message_id in self.books.makers:
            found["created_by"] = self.books.makers[message_id]
        known = self.view.arrival_of(message_id)
        if known is not None:
            number = self.view.number_of(message_id)
            found |= {"number": number, "digest": known.digest.hex(), "request": known.request}
        return found

    def watch(self) -> None:
        """Tell when the context enters another zone."""
        percent = self.books.budget.utilization()
        zone = next_zone(self.zone, percent, self.config)
        if zone is not self.zone:
            before, self.zone = self.zone, zone
            self.events.emit("zone_changed", before=before.value, now=zone.value, percent=percent)

    def _count_turn(self, message: Message) -> None:
        if opens_turn(message):
            self.turns_taken += 1
            self.turns_in_view += 1
        # A pin by number is resolved once, as the turn comes in, and stays with its messages.
        if self.turns_taken - 1 in self.config.pinned_turn_indices:
            self.pinned_messages.add(message.message_id)

    # -- what is asked ------------------------------------------------------------------------------

    def usage(self, target_tokens: int | None = None) -> ContextUsage:
        """Return how full the context is, and where a collection would land."""
        budget = self.books.budget
        limit, percent = budget.context_limit, budget.utilization()
        target = int(limit * self.config.target_percent / 100)
        return ContextUsage(
            total_tokens=budget.total_tokens(),
            context_limit=limit,
            percent_used=percent,
            zone=zone_of(percent, self.config),
            turns=self.turns_in_view,
            messages=len(self.view.messages),
            by_source={k.value: v for k, v in budget.tokens_by_source().items()},
            by_type={str(k): a.tokens for k, a in self.heap.ledger.by("type").items()},
            by_policy={k.value: v for k, v in budget.tokens_by_policy().items()},
            target_tokens=target if target_tokens is None else target_tokens,
            stashed_tokens=self.heap.ledger.stashed.tokens,
            exact=self.counter.exact,
            pinned_message_ids=frozenset(self.kept_messages()),
        )

    def kept_messages(self) -> set[str]:
        """Return the messages that no collection may touch: pinned, or recalled not long ago."""
        held = {m for m, until in self.held_until.items() if until > self.collections}
        pinned = {
            segment.message_id
            for segment in map(self.heap.get, self.heap.recent.pinned)
            if segment.message_id is not None
        }
        return self.pinned_messages | held | pinned

    # -- what a strategy may ask --------------------------------------------------------------------

    def message_tokens(self, message: Message) -> int:
        """Return the tokens of a message."""
        return self.books.tokens(message)

    def next_summary_id(self) -> str:
        """Return `gc_summary_N` with a number that was never used before."""
        self.summaries += 1
        return f"gc_summary_{self.summaries}"

    def gc_state(self, history: list[Message]) -> GCState:  # noqa: ARG002 - the heap has it already
        """Return the heap with task, active file and time."""
        return GCState(
            heap=self.heap,
            now=self.clock(),
            current_task_id=self.task_id,
            task_dependencies=self.task_dependencies,
            active_file=self.active_file,
            active_range=self.active_range,
            knobs=root_knobs(self.config),
            ghosts=self.ghosts,
            request=self.requests,
        )

    def groups(self, history: list[Message]) -> list[tuple[int, ...]]:
        """Return the places of the messages that live and die together, oldest first."""
        return self.view.groups_of(history)

    def segment_ids(self, message_id: str) -> tuple[str, ...]:
        """Return the segments of a message, one for each of its parts."""
        return self.segmenter.segment_ids(message_id)

    def handle(self, segment_id: str) -> str:
        """Return the handle that recalls a segment once it is stashed; a stand-in has its original's."""
        segment = self.heap.peek(segment_id)
        original = segment.derived_from if segment is not None else None
        return self.stash.handle(segment_id if original is None else original)

    @property
    def binds_thinking(self) -> bool:
        """Whether the model refuses thinking that stands behind an edit."""
        return self.format == "anthropic" and binds_thinking(self.model or "")
