"""How full the context is, and what the requests cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import msgspec

from ctxgc.errors import MessageError
from ctxgc.guard import Zone, next_zone, zone_of
from ctxgc.invariants import is_thinking, may_stay_open
from ctxgc.session.journal import JournalRequest, request_writes
from ctxgc.session.part import SessionCore, SessionPart


@dataclass(frozen=True, kw_only=True)
class ContextUsage(Mapping[str, Any]):
    """The size of the context now; also a mapping, so `usage["percent_used"]` works as well.

    `target_tokens` is where a collection would land; `pinned_message_ids` may not leave: pins, and
    what annotations make roots.
    """

    total_tokens: int
    context_limit: int
    percent_used: float
    zone: Zone
    turns: int
    messages: int
    by_source: dict[str, int]
    by_type: dict[str, int]
    by_policy: dict[str, int]
    target_tokens: int
    stashed_tokens: int = 0
    exact: bool = True
    pinned_message_ids: frozenset[str] = frozenset()

    def __getitem__(self, key: str) -> Any:
        if key not in _NAMES:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready data."""
        pinned = sorted(self.pinned_message_ids)
        return {**self, "zone": self.zone.value, "pinned_message_ids": pinned}


_NAMES: tuple[str, ...] = tuple(field.name for field in fields(ContextUsage))


class UsageMeter(SessionPart):
    """Measures how full the context is, and reports when it enters another zone."""

    def __init__(self, core: SessionCore, *, held: Callable[[int | None], set[str]]) -> None:
        super().__init__(core)
        self._held = held

    def usage(self, target_tokens: int | None = None) -> ContextUsage:
        """Return how full the context is, and where a collection would land."""
        budget, config = self._accounting.budget, self._options.config
        limit, percent = budget.context_limit, budget.utilization()
        target = int(limit * config.target_percent / 100)
        ledger = self._heap.ledger
        return ContextUsage(
            total_tokens=budget.total_tokens(),
            context_limit=limit,
            percent_used=percent,
            zone=zone_of(percent, config),
            turns=self._view.turns,
            messages=len(self._view.messages),
            by_source={k.value: v for k, v in budget.tokens_by_source().items()},
            by_type={str(k): a.tokens for k, a in ledger.by("type").items()},
            by_policy={k.value: v for k, v in budget.tokens_by_policy().items()},
            target_tokens=target if target_tokens is None else target_tokens,
            stashed_tokens=ledger.stashed.tokens,
            exact=self._accounting.counter.exact,
            pinned_message_ids=frozenset(self._held(target_tokens)),
        )

    def watch(self) -> None:
        """Emit an event when the context has entered another zone."""
        percent = self._accounting.budget.utilization()
        before = self._state.zone
        zone = next_zone(before, percent, self._options.config)
        if zone is not before:
            self._state.zone = zone
            self._events.emit("zone_changed", before=before.value, now=zone.value, percent=percent)


# -- Requests


class ReportedUsage(NamedTuple):
    """What a provider counted for a request: the input that it did not cache, the rest of it, the output.

    `cache_write_1h` of what was written to the cache stays there for an hour.
    """

    input: int
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    output: int = 0


class RequestLog(SessionPart):
    """Records the requests: what each sends, and what it would have cost without collecting."""

    def check_complete(self) -> None:
        """Check that nothing in the view waits for what belongs to it.

        Raises:
            MessageError: a call has no result yet, or reasoning is alone at the end.
        """
        hint = "view() shows the messages as they are"
        for call, message_id in self._view.waiting.items():
            caller = self._view.get(message_id)
            if caller is not None and may_stay_open(caller):
                continue
            raise MessageError(
                f"the tool call '{call}' waits for its result",
                hint=f"append the result first; {hint}",
                call_id=call,
                message_id=message_id,
            )
        last = self._view.messages[-1] if self._view.messages else None
        if last is not None and last.format == "responses" and is_thinking(last):
            raise MessageError(
                "the reasoning at the end waits for what follows it",
                hint=f"append the rest of the answer first; {hint}",
                message_id=last.message_id,
            )

    def __init__(self, core: SessionCore) -> None:
        super().__init__(core)
        self._last: JournalRequest | None = None

    def record(self) -> None:
        """Record the view that is sent now, durably.

        Raises:
            StoreError: it could not be made durable; then it is not sent, and nothing was recorded.
        """
        with self._state.rollback_on_error():
            sent = self._book()
            self._archive.later(*request_writes(sent))
            self._archive.save()
        self._last = sent

    def note_reported(self, reported: ReportedUsage) -> None:
        """Note what the provider counted for the last request; it is stored with the next save."""
        if self._last is None:
            return
        self._last = msgspec.structs.replace(
            self._last,
            input=reported.input,
            cache_read=reported.cache_read,
            cache_write=reported.cache_write,
            cache_write_1h=reported.cache_write_1h,
            output=reported.output,
        )
        self._archive.later(*request_writes(self._last))

    def _book(self) -> JournalRequest:
        state = self._state
        sent = self._accounting.budget.total_tokens()
        warm = not self.is_cold()
        cached = min(sent, state.sent_before) if warm else 0
        unpruned = self.unpruned_tokens()
        state.savings = copy(state.savings)
        state.savings.record(sent, cached, unpruned, warm=warm)
        state.sent_before = sent
        state.sent_messages = len(self._view.messages)
        state.sent_at = self._options.clock()
        state.requests += 1
        return JournalRequest(
            number=state.requests, at=state.sent_at, tokens=sent, cached=cached,
            limit=self._accounting.budget.context_limit, unpruned=unpruned, warm=warm,
            ttl_seconds=self._options.prices.ttl_seconds, model=self._options.model,
        )  # fmt: skip

    def is_cold(self) -> bool:
        """Return whether the provider's cache of the last request has lapsed by now."""
        life, sent_at = self._options.prices.ttl_seconds, self._state.sent_at
        if life is None or sent_at is None:
            return False
        return (self._options.clock() - sent_at).total_seconds() > life

    def unpruned_tokens(self) -> int:
        """Return the size of the next request had nothing ever been collected."""
        return self._state.ingested_tokens + self._accounting.beside_tokens()
