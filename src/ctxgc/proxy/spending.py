"""Spending: what sessions cost by the counts of their providers, and caps in dollars on that.

A request is refused once what came before it has reached a cap: what it will cost itself is not known.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from ctxgc.insight import answer_spend
from ctxgc.proxy.conversations import PREFIX, SPENT, Line, spent_of
from ctxgc.session import Put, Store

_log = logging.getLogger("ctxgc.proxy")

_SCAN_SECONDS = 60.0
"""How old the sum of the day may be where several processes spend."""


class SpendCaps(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars that a session, and that all sessions of a day (UTC), may cost."""

    session: float | None = None
    day: float | None = None


class Spending:
    """Books what requests cost with their sessions, and says when a cap is reached. Thread-safe."""

    def __init__(self, store: Store, caps: SpendCaps, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._caps = caps
        self._clock = clock
        self._lock = threading.Lock()
        self._scanned: datetime | None = None
        self._today = 0.0
        self._unpriced: set[str] = set()

    def refusal(self, spent: float) -> str | None:
        """Return why a request of a session that has cost so much is not sent; None if it may be."""
        caps = self._caps
        if caps.session is not None and spent >= caps.session:
            return f"this session has cost {spent:.2f} $, and its cap is {caps.session:.2f} $"
        if caps.day is None:
            return None
        today = self.today()
        if today >= caps.day:
            return f"today's requests have cost {today:.2f} $, and the cap of a day is {caps.day:.2f} $"
        return None

    def dollars(self, counts: Mapping[str, Any], model: str | None) -> float:
        """Return what a request cost; nothing, and a warning, where its model has no known price."""
        spend = answer_spend(counts, model)
        if spend.unpriced and (name := model or "?") not in self._unpriced:
            self._unpriced.add(name)
            _log.warning("no price is known for %s: what it costs counts for no cap", name)
        return spend.dollars

    def book(self, dollars: float, line: Line | None) -> None:
        """Book what a request cost: today, and with its session, whose lock the caller holds."""
        now = self._clock()
        self.today()
        with self._lock:
            self._today += dollars
        if line is not None and dollars:
            day = now.date().isoformat()
            line.spent = {**line.spent, day: line.spent.get(day, 0.0) + dollars}
            line.session.inspect().archive.later(Put("state", SPENT, {"days": line.spent}))

    def today(self) -> float:
        """Return what all sessions of the store cost today, as far as that is known here."""
        now = self._clock()
        with self._lock:
            last = self._scanned
            is_old = last is None or last.date() != now.date()
            if is_old or (last is not None and (now - last).total_seconds() > _SCAN_SECONDS):
                stored = self._stored(now)
                self._today = stored if is_old else max(self._today, stored)
                self._scanned = now
            return self._today

    def _stored(self, now: datetime) -> float:
        day = now.date().isoformat()
        names = (
            info.session_id
            for info in self._store.sessions()
            if info.session_id.startswith(PREFIX) and info.updated_at.date() >= now.date()
        )
        return sum(spent_of(self._store, name).get(day, 0.0) for name in names)
