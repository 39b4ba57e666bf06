"""What a session knows and works by.

`SessionState` is everything that is stored besides messages, segments and collections: one struct, encoded
and decoded in one place, and put back whole when a change fails. `SessionOptions` are given anew each time a
session is opened.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from ctxgc.budget import GCPolicy
from ctxgc.config import GCConfig
from ctxgc.core import RecallMemory
from ctxgc.economics import PriceSheet, SavingsLedger
from ctxgc.errors import StoreDamagedError
from ctxgc.guard import ThrashBreaker, Zone
from ctxgc.strategies import GCPlugin

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
        both = [*self.left_alone(request), *message_ids]
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
    default. Containers are replaced, not changed, so that an earlier copy of the struct stays what it was.
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
    step: int = 0
    opened: list[str] = []
    first_request: str | None = None
    policies: dict[str, GCPolicy] = {}
    """Policies that the user gave to messages, instead of the usual ones."""
    beside: list[dict[str, Any]] = []
    """What is sent alongside the messages: system prompt, tools, enrichment."""

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

        try:
            return msgspec.convert({"savings": {}, **doc}, cls, dec_hook=read)
        except (msgspec.ValidationError, AttributeError, TypeError, ValueError) as error:
            raise StoreDamagedError(
                f"the stored state of the session cannot be read: {error}",
                hint="restore the store from a checkpoint or a copy",
            ) from None

    def to_doc(self) -> dict[str, Any]:
        """Return the state as a document of JSON values that later changes do not reach."""
        doc: dict[str, Any] = msgspec.to_builtins(
            self, enc_hook=_part_to_doc, builtin_types=(datetime,)
        )
        doc["pinned_messages"] = sorted(self.pinned_messages)
        doc["task_dependencies"] = sorted(self.task_dependencies)
        doc["sent_at"] = None if self.sent_at is None else self.sent_at.isoformat()
        doc["active_range"] = None if self.active_range is None else list(self.active_range)
        return doc

    @contextmanager
    def rollback_on_error(self) -> Iterator[None]:
        """Put the state back as it is now if what happens inside fails."""
        before = copy(self)
        try:
            yield
        except BaseException:
            for name in self.__struct_fields__:
                setattr(self, name, getattr(before, name))
            raise


def _part_to_doc(part: Any) -> Any:
    return part.sums() if isinstance(part, SavingsLedger) else part.to_doc()
