"""Saving: what is new or changed goes to the archive and is made durable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from ctxgc.budget import GCPolicy
from ctxgc.config import GCConfig
from ctxgc.core import ContextSegment, Format, GCState, Heap, Message, RecallMemory
from ctxgc.economics import PriceSheet, SavingsLedger
from ctxgc.guard import ThrashBreaker, Zone, next_zone, zone_of
from ctxgc.session.accounting import Books, ContextUsage
from ctxgc.session.archive import GONE, SHOWN, Archive, arrival_write, message_from_doc
from ctxgc.session.events import Events, tell_secrets
from ctxgc.session.handles import Stash
from ctxgc.session.record import Applied
from ctxgc.session.thinking import BoundThinking
from ctxgc.session.view import Arrival, Gone, View
from ctxgc.strategies import (
    GCPlugin,
    GCResult,
    MarkSweepStrategy,
    Preset,
    Segmenter,
    Thrift,
    custom,
    opens_turn,
    preset,
    root_knobs,
    serving,
)
from ctxgc.tokens import CountingCache
from ctxgc.wire import Texts, binds_thinking

# -- Roomy windows: where what leaves is chosen by its price, long before room is needed


ROOMY_WINDOW = 100_000
"""In a smaller window what leaves is chosen by its worth, when room is needed, not by its price."""


def thrift_for(
    plugin: GCPlugin,
    context_limit: int,
    prices: PriceSheet,
    tokens: Callable[[Message], int],
    texts: Texts,
) -> Thrift | None:
    """Return what collects for the price alone, if the strategy asks for it and the window is roomy."""
    how = preset_of(plugin)
    if not isinstance(plugin, MarkSweepStrategy) or how is None or context_limit < ROOMY_WINDOW:
        return None
    chosen = plugin.thrift
    trims = how.trims_calls if chosen.trim_calls is None else chosen.trim_calls
    return Thrift(how, prices, tokens, texts=texts, trims_calls=trims)


def preset_of(plugin: GCPlugin) -> Preset | None:
    """Return by which constants a strategy wants to collect for the price; None if it does not.

    Raises:
        ConfigError: its constants are wrong.
    """
    if not isinstance(plugin, MarkSweepStrategy):
        return None
    chosen = plugin.thrift
    own = None if chosen.constants is None else custom(chosen.constants)
    if chosen.preset == "off":
        return None
    return own or preset(chosen.preset)


# -- What was undone: messages that somebody brought back, and that are left alone for a while


LEFT_ALONE = 32
"""For how many requests what somebody undid is not collected again by itself."""


class Undone:
    """Knows until which request a message is left alone."""

    def __init__(self) -> None:
        self._until: dict[str, int] = {}

    def note(self, message_ids: Iterable[str], request: int) -> None:
        """Leave these messages alone, and those that still are, for some requests from now on."""
        both = [*self.left_alone(request), *message_ids]
        self._until = dict.fromkeys(both, request + LEFT_ALONE)

    def left_alone(self, request: int) -> set[str]:
        """Return the messages that are left alone before a request."""
        return {message_id for message_id, until in self._until.items() if until > request}

    def clear(self) -> None:
        """Somebody collects by hand: what was undone before counts no longer."""
        self._until = {}

    def to_doc(self) -> dict[str, int]:
        """Return it as JSON values."""
        return dict(self._until)

    def restate(self, doc: Mapping[str, int]) -> None:
        """Be what a document says."""
        self._until = dict(doc)


# -- The workings of a session: its parts, and how messages come in. It hosts the strategy


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
        self.ghosts = RecallMemory()
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
            for segment in map(self.heap.get, self.heap.root_index.pinned)
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
            recalls=self.ghosts,
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


# -- Restoring: a session goes on after a restart from what its archive holds


Docs = dict[str, dict[str, Any]]


def reopen(w: Workings) -> None:
    """Become the session that the archive holds."""
    state = w.archive.load_state()
    w.summaries = state.get("summaries", 0)
    w.turns_taken = state.get("turns_taken", 0)
    w.ingested_tokens = state.get("ingested_tokens", 0)
    w.pinned_messages = set(state.get("pinned_messages", ()))
    w.held_until = dict(state.get("held_until", {}))
    w.undone.restate(state.get("undone", {}))
    w.ghosts.restate(state.get("ghosts", {}))
    w.zone = Zone(state.get("zone", Zone.SAFE))
    w.task_id = state.get("task_id")
    w.task_dependencies = frozenset(state.get("task_dependencies", ()))
    w.active_file = state.get("active_file")
    lines = state.get("active_range")
    w.active_range = (lines[0], lines[1]) if lines else None
    if "secret" in state:
        w.stash.secret = bytes.fromhex(state["secret"])
    w.books.policies = {k: GCPolicy(v) for k, v in state.get("policies", {}).items()}
    _reopen_requests(w, state)
    _reopen_heap(w, state)
    docs: Docs = dict(w.archive.store.load(w.archive.session_id, "messages"))
    came_in = {key: message_from_doc(doc) for key, doc in docs.items() if _is_arrival(key, doc)}
    _reopen_view(w, docs, came_in)
    _reopen_history(w, came_in)
    _reopen_books(w, docs, state)


def _reopen_requests(w: Workings, state: dict[str, Any]) -> None:
    """Know what was sent and what came of it: the next decisions rest on that."""
    w.requests = state.get("requests", 0)
    w.sent_messages = state.get("sent_messages", 0)
    w.sent_before = state.get("sent_before", 0)
    sent_at = state.get("sent_at")
    w.sent_at = datetime.fromisoformat(sent_at) if sent_at else None
    w.stuck_at = state.get("stuck_at")
    w.thrash = dict(state.get("thrash", {}))
    w.thrashing.restate(state.get("thrashing", {}))
    w.savings.restate(state.get("savings", {}))


def _reopen_heap(w: Workings, state: dict[str, Any]) -> None:
    segments = w.archive.load_segments()
    w.heap.mentions.restate_common(w.archive.load_state("common").get("names", ()))
    known = {segment.segment_id for segment in segments}
    w.heap.rebuild([_without_strays(segment, known) for segment in segments])
    w.heap.step = max(state.get("step", 0), w.heap.step)
    w.heap.root_index.opened.update(dict.fromkeys(state.get("opened", ())))
    if state.get("first_request") is not None:
        w.heap.root_index.first_request = state["first_request"]
    numbers = [_number(segment) for segment in segments]
    w.segmenter.numbered = max(*numbers, state.get("numbered", 0), 0)
    w.stash.learn([segment.segment_id for segment in segments])


def _without_strays(segment: ContextSegment, known: set[str]) -> ContextSegment:
    """A link to a segment that was deleted before the crash leads nowhere; leave it out."""
    refs = tuple(ref for ref in segment.references if ref in known)
    derived = segment.derived_from if segment.derived_from in known else None
    if refs == segment.references and derived == segment.derived_from:
        return segment
    return replace(segment, references=refs, derived_from=derived)


def _number(segment: ContextSegment) -> int:
    prefix, _, number = segment.segment_id.rpartition("-")
    return int(number) if prefix == "s" and number.isdigit() else 0


def _is_arrival(key: str, doc: dict[str, Any]) -> bool:
    """Tell whether a document holds a message as it came in, not deleted since."""
    return not key.startswith((GONE, SHOWN)) and "format" in doc


def _reopen_view(w: Workings, docs: Docs, came_in: dict[str, Message]) -> None:
    w.view.originals = dict(_originals(docs, came_in))
    edited = {i: message_from_doc(docs[f"{SHOWN}{i}"]) for i in came_in if f"{SHOWN}{i}" in docs}
    shown = [edited.get(i, m) for i, m in came_in.items() if f"{GONE}{i}" not in docs]
    arrivals = [
        (
            doc["number"],
            Arrival(key, bytes.fromhex(doc["digest"]), doc.get("request", w.requests)),
        )
        for key, doc in docs.items()
        if "digest" in doc
    ]
    places = {key: doc["place"] for key, doc in docs.items() if "place" in doc}
    w.view.restate([arrival for _, arrival in sorted(arrivals, key=itemgetter(0))])
    w.view.next_place = max(places.values(), default=-1.0) // 1 + 1.0
    w.view.show(sorted(shown, key=lambda m: places[m.message_id]), places)
    w.turns_in_view = sum(map(opens_turn, w.view.messages))


def _originals(docs: Docs, came_in: dict[str, Message]) -> list[tuple[str, Gone]]:
    found = []
    for message_id, message in came_in.items():
        doc = docs.get(f"{GONE}{message_id}") or docs.get(f"{SHOWN}{message_id}")
        if doc is not None:
            ids, together = tuple(doc["segment_ids"]), tuple(doc["together"])
            gone = Gone(message=message, segment_ids=ids, together=together)
            found.append((message_id, gone))
    return found


def _reopen_history(w: Workings, came_in: dict[str, Message]) -> None:
    rows = sorted(w.archive.store.load(w.archive.session_id, "collections"))
    for key, doc in rows:
        described = {k: v for k, v in doc["result"].items() if k != "tokens_freed"}
        w.results.append(GCResult.from_dict(described))
        if "before" in doc:
            w.applied.append(Applied.from_doc(int(key), doc, came_in))
            w.view.remember_places(doc["places"])
    w.collections = len(w.applied)


def _reopen_books(w: Workings, docs: Docs, state: dict[str, Any]) -> None:
    w.books.restore_beside(state.get("beside", ()))
    w.bound.restate(docs)
    w.books.born = {key: doc["born"] for key, doc in docs.items() if "born" in doc}
    w.books.makers = {k: doc["created_by"] for k, doc in docs.items() if "created_by" in doc}
    by_message: dict[str, list[ContextSegment]] = {}
    for segment in w.heap.working():
        by_message.setdefault(segment.message_id or "", []).append(segment)
    for message in w.view.messages:
        segments = by_message.get(message.message_id, [])
        if len(segments) == len(message.parts):
            ids = tuple(s.segment_id for s in sorted(segments, key=lambda s: s.position))
            w.segmenter.adopt(message.message_id, ids)
        else:
            w.segmenter.take(message)
        w.books.enter(message)


# -- Saving: what is new or changed goes to the archive and is made durable


def state_of(w: Workings) -> dict[str, Any]:
    """Return what a session knows beside its messages and segments, as JSON values."""
    heap, recent = w.heap, w.heap.root_index
    return {
        "context_limit": w.books.budget.context_limit,
        "secret": w.stash.secret.hex(),
        "summaries": w.summaries,
        "turns_taken": w.turns_taken,
        "numbered": w.segmenter.numbered,
        "ingested_tokens": w.ingested_tokens,
        "pinned_messages": sorted(w.pinned_messages),
        "held_until": dict(w.held_until),
        "undone": w.undone.to_doc(),
        "requests": w.requests,
        "sent_messages": w.sent_messages,
        "sent_before": w.sent_before,
        "sent_at": w.sent_at.isoformat() if w.sent_at else None,
        "stuck_at": w.stuck_at,
        "ghosts": w.ghosts.to_doc(),
        "thrash": dict(w.thrash),
        "thrashing": w.thrashing.to_doc(),
        "savings": w.savings.sums(),
        "task_id": w.task_id,
        "task_dependencies": sorted(w.task_dependencies),
        "active_file": w.active_file,
        "active_range": list(w.active_range) if w.active_range else None,
        "zone": w.zone.value,
        "step": heap.step,
        "opened": list(recent.opened),
        "first_request": recent.first_request,
        "policies": {key: policy.value for key, policy in w.books.policies.items()},
        "beside": w.books.beside(),
    }


def note_state(w: Workings) -> None:
    """Write with the next commit what is neither message nor segment, where it changed."""
    w.archive.note_state("session", state_of(w))


def note_changes(w: Workings) -> None:
    """Write with the next commit what came in or was changed by hand since the last one."""
    note_state(w)
    segments = [s for s in map(w.heap.peek, w.unsaved) if s is not None]
    w.archive.note_segments(segments, w.handle)
    w.unsaved.clear()


def save(w: Workings) -> None:
    """Make everything durable that came in or was changed by hand since the last time."""
    note_changes(w)
    w.archive.commit()


def save_all(w: Workings) -> None:
    """Make everything durable, every header included."""
    w.archive.note_segments(w.heap, w.handle)
    w.archive.note_state("common", {"names": w.heap.mentions.common()})
    save(w)
