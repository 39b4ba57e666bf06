"""What a session knows and counts.

`SessionState` is everything that is stored besides messages, segments and collections: one struct, encoded
and decoded in one place, and put back whole when a change fails. `SessionOptions` are given anew each time a
session is opened. `Accounting` keeps the budget equal to the view.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource
from ctxgc.collector import Probation
from ctxgc.config import GCConfig
from ctxgc.core import Format, Message, RecallMemory
from ctxgc.economics import PriceSheet, SavingsLedger
from ctxgc.errors import StoreDamagedError
from ctxgc.guard import ThrashBreaker, TriggersSeen, Zone
from ctxgc.session.alongside import Alongside
from ctxgc.strategies import GCPlugin
from ctxgc.tokens import CountingCache, message_tokens

UNDO_COOLDOWN = 32
"""For how many requests the messages of an undone collection are not collected again automatically."""


@dataclass
class SessionOptions:
    """What the opener of a session chose; `set_gc_plugin` replaces the plugin and the configuration."""

    config: GCConfig
    plugin: GCPlugin
    prices: PriceSheet
    model: str | None
    recall_call: str | None
    clock: Callable[[], datetime]


class UndoCooldown:
    """Knows until which request a message is left alone after an undo."""

    def __init__(self) -> None:
        self._until: dict[str, int] = {}

    def note(self, message_ids: Iterable[str], request: int) -> None:
        """Leave these messages alone, and those that still are, for some requests from now on."""
        both = [*sorted(self.left_alone(request)), *message_ids]
        self._until = dict.fromkeys(both, request + UNDO_COOLDOWN)

    def left_alone(self, request: int) -> set[str]:
        """Return the messages that are left alone before a request."""
        return {message_id for message_id, until in self._until.items() if until > request}

    def clear(self) -> None:
        """End all cool-downs: the user collects by hand."""
        self._until = {}

    def to_doc(self) -> dict[str, int]:
        """Return it as JSON values."""
        return dict(self._until)

    def restate(self, doc: Mapping[str, int]) -> None:
        """Become what a document says."""
        self._until = dict(doc)


def _new_secret() -> str:
    return secrets.token_bytes(16).hex()


class SessionState(msgspec.Struct, kw_only=True):
    """All that is stored of a session besides its messages, segments and collections.

    The fields are the keys of the stored document, in its order; what an older version did not store has its
    default. Containers are replaced, not changed, and parts with methods are copied before a change that can
    fail, so that what was kept of an earlier moment stays what it was.
    `Archive` fills in what the heap, the segmenter and the budget count themselves: `context_limit`,
    `numbered`, `step`, `opened`, `first_request`, `beside`.
    """

    context_limit: int = 0
    secret: str = msgspec.field(default_factory=_new_secret)
    """The key that handles are derived from, in hexadecimal."""
    summaries: int = 0
    """How many summaries were numbered so far; a number is never used again."""
    turns_taken: int = 0
    numbered: int = 0
    ingested_tokens: int = 0
    """The tokens of all messages that ever came in: the size of the view had nothing been collected."""
    pinned_messages: frozenset[str] = frozenset()
    held_until: dict[str, int] = {}
    """Recalled messages, each with the number of collections until which it is kept."""
    undone: UndoCooldown = msgspec.field(default_factory=UndoCooldown)
    requests: int = 0
    sent_messages: int = 0
    """How many messages of the view the last request carried, unchanged since."""
    sent_before: int = 0
    """The tokens of the last request that are unchanged since, and so may still be cached."""
    sent_at: datetime | None = None
    stuck_at: int | None = None
    """The size of the context when a collection could not help; None if the last one did."""
    ghosts: RecallMemory = msgspec.field(default_factory=RecallMemory)
    thrash: dict[str, int] = {}
    """What thrashing was found and not yet reported with a collection."""
    thrashing: ThrashBreaker = msgspec.field(default_factory=ThrashBreaker)
    savings: SavingsLedger
    task_id: str | None = None
    task_dependencies: frozenset[str] = frozenset()
    active_file: str | None = None
    active_range: tuple[int, int] | None = None
    zone: Zone = Zone.SAFE
    triggers: TriggersSeen = TriggersSeen()
    """What the triggers of checkpoints saw so far."""
    step: int = 0
    opened: list[str] = []
    first_request: str | None = None
    policies: dict[str, GCPolicy] = {}
    """Policies that the user gave to messages, instead of the usual ones."""
    beside: list[dict[str, Any]] = []
    """What is sent alongside the messages: system prompt, tools, enrichment."""
    format: Format | None = None
    """The format that was named, or that a message showed clearly; None while it is only guessed."""
    recall_calls: list[str] = []
    """How the model recalls, as hosts said it: the newest last, empty where it cannot (`remember`)."""
    calibrations: dict[str, list[float]] = {}
    """What the counters learned from what providers counted, by the name of the counter."""
    probation: Probation | None = None
    """A collection for the price that is planned and waits; a change of what was sent ends it."""
    changes: int = 0
    """How many changes of the view were numbered so far; the journal keeps the newest."""

    @classmethod
    def from_doc(cls, doc: Mapping[str, Any], ledger: SavingsLedger) -> SessionState:
        """Return the state that a document holds; `ledger` goes on with the savings of the document.

        Raises:
            StoreDamagedError: the document is not one that `to_doc` made.
        """

        def read(kind: type, value: Any) -> Any:
            made = ledger if kind is SavingsLedger else kind()
            made.restate(value)
            return made

        sent_at = doc.get("sent_at")
        try:
            # Offsets with seconds are beyond what msgspec reads.
            sent = None if sent_at is None else datetime.fromisoformat(sent_at)
            return msgspec.convert({"savings": {}, **doc, "sent_at": sent}, cls, dec_hook=read)
        except (msgspec.ValidationError, AttributeError, TypeError, ValueError) as error:
            raise StoreDamagedError(
                f"the stored state of the session cannot be read: {error}",
                hint="restore the store from a checkpoint or a copy",
            ) from None

    def to_doc(self) -> dict[str, Any]:
        """Return the state as a document of JSON values that later changes do not reach."""
        doc: dict[str, Any] = msgspec.to_builtins(self, enc_hook=_part_to_doc)
        doc["triggers"]["due"] = sorted(self.triggers.due)
        doc["pinned_messages"] = sorted(self.pinned_messages)
        doc["task_dependencies"] = sorted(self.task_dependencies)
        doc["sent_at"] = None if self.sent_at is None else self.sent_at.isoformat()
        doc["active_range"] = None if self.active_range is None else list(self.active_range)
        return doc

    @contextmanager
    def rollback_on_error(self) -> Iterator[None]:
        """Put the state back as it is now if what happens inside fails."""
        before = {name: getattr(self, name) for name in self.__struct_fields__}
        before |= {
            name: copy(before[name]) for name in ("undone", "ghosts", "thrashing", "savings")
        }
        try:
            yield
        except BaseException:
            for name, value in before.items():
                setattr(self, name, value)
            raise


def _part_to_doc(part: Any) -> Any:
    return part.sums() if isinstance(part, SavingsLedger) else part.to_doc()


# -- Accounting: what each message costs


class Accounting:
    """Keeps the budget equal to the view, message by message."""

    def __init__(
        self,
        context_limit: int,
        counter: CountingCache,
        state: SessionState,
        clock: Callable[[], datetime],
    ) -> None:
        self.budget = InstructionBudget(context_limit, clock=self._now)
        self.counter = counter
        self.alongside = Alongside(self.budget, counter)
        self._state = state
        self.message_total = 0
        """The tokens of all messages in the view."""
        self.born: dict[str, float] = {}
        """When each message first came in; a recall or an undo does not make it younger."""
        self.makers: dict[str, str] = {}
        """What created the messages that the host did not send."""
        self._clock = clock
        self._sizes: dict[int, tuple[Message, int]] = {}
        self._first_request: str | None = None

    def _now(self) -> float:
        return self._clock().timestamp()

    def tokens(self, message: Message) -> int:
        """Return the tokens of a message; each message object is counted once."""
        known = self._sizes.get(id(message))
        if known is not None and known[0] is message:
            return known[1]
        size = message_tokens(message, self.counter)
        self._sizes[id(message)] = (message, size)
        return size

    def enter(self, message: Message) -> None:
        """Book a message that is in the view now."""
        message_id = message.message_id
        source, policy = self._place(message)
        tokens = self.tokens(message)
        self.budget.add_child(
            source,
            message_id,
            tokens,
            self._state.policies.get(message_id, policy),
            label="Context Summary" if message.origin == "gc_summary" else message.role,
            created_at=self.birth(message_id),
            metadata={"created_by": self.makers[message_id]} if message_id in self.makers else {},
            message_ids=(message_id,),
        )
        self.message_total += tokens

    def birth(self, message_id: str) -> float:
        """Return when a message first came in; now, if it never did."""
        return self.born.setdefault(message_id, self._now())

    def leave(self, message: Message) -> None:
        """Remove a message from the budget."""
        for source, key in self.budget.children_of_message(message.message_id):
            self.message_total -= self.budget.remove_child(source, key).tokens
        self._sizes.pop(id(message), None)

    def forget(self, message_ids: Collection[str]) -> None:
        """Let another message be the first request if it is one of these, which the host took back."""
        if self._first_request in message_ids:
            self._first_request = None

    @contextmanager
    def forgetting(self, message_ids: Collection[str]) -> Iterator[None]:
        """Forget messages while the view changes; if that fails, remember them."""
        before = self._first_request
        try:
            self.forget(message_ids)
            yield
        except BaseException:
            self._first_request = before
            raise

    def set_policy(self, message_id: str, policy: GCPolicy) -> None:
        """Give a message of the view another policy."""
        for source, key in self.budget.children_of_message(message_id):
            self.budget.set_policy(source, key, policy)

    def beside_tokens(self) -> int:
        """Return the tokens that are sent alongside the messages: system prompt, tools, enrichment."""
        return self.budget.total_tokens() - self.message_total

    def tokens_up_to(self, messages: Sequence[Message], place: int) -> int:
        """Return the tokens of the messages before a place of the view, and what is sent alongside."""
        if place > len(messages) // 2:
            return self.budget.total_tokens() - sum(map(self.tokens, messages[place:]))
        return self.beside_tokens() + sum(map(self.tokens, messages[:place]))

    def calibrate(self, input_tokens: int, messages: Iterable[Message]) -> bool:
        """Teach the counter what the provider counted; return whether that changed the sizes of messages."""
        before = self.counter.scale
        if not self.counter.calibrate(self.budget.total_tokens(), input_tokens):
            return False
        # What came in is compared with the view, so both are counted in the same way.
        ingested = self._state.ingested_tokens * self.counter.scale / before
        self._state.ingested_tokens = round(ingested)
        learned = {self.counter.name: list(self.counter.ratios)}
        self._state.calibrations = {**self._state.calibrations, **learned}
        self.alongside.recount()
        for message in messages:
            self.leave(message)
            self.enter(message)
        return True

    def _place(self, message: Message) -> tuple[InstructionSource, GCPolicy]:
        if message.role == "system":
            return InstructionSource.SYSTEM, GCPolicy.LOCKED
        return InstructionSource.CONVERSATION, self._policy(message)

    def _policy(self, message: Message) -> GCPolicy:
        if message.origin == "gc_summary":
            return GCPolicy.PRESERVABLE
        if message.origin == "gc_notice":
            return GCPolicy.EPHEMERAL
        if message.opens_turn() and self._first_request in (None, message.message_id):
            self._first_request = message.message_id
            return GCPolicy.LOCKED
        return GCPolicy.PARTIAL if _says_something(message) else GCPolicy.EPHEMERAL


def _says_something(message: Message) -> bool:
    """Return whether a message has more than calls, results and thinking, which are ephemeral."""
    return any(
        part.kind in ("text", "media") and (part.text.strip() or part.media_tokens)
        for part in message.parts
    )
