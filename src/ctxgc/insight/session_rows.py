"""All sessions in rows, as a list of them is shown: recorded ones and those of a store, with trends.

What a file says is read once and kept until the file changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec

from ctxgc.config import GCConfig
from ctxgc.economics import ModelPrice, Savings, model_price
from ctxgc.errors import CtxgcError, InputError, StoreError
from ctxgc.insight.cost import (
    UNKNOWN_DAY,
    CostedRequest,
    Spend,
    prices_in_use,
    summed_cost,
    total_cost,
    total_of,
)
from ctxgc.insight.fill import fill_of
from ctxgc.insight.local_sessions import SessionFile, find_sessions
from ctxgc.insight.overview import LocalSession, SessionReading, read_session
from ctxgc.insight.stored_timeline import sent_spend
from ctxgc.session import JournalRequest, read_journal
from ctxgc.stores import SessionInfo, Store

MOST_SESSIONS = 200
"""So many files of recorded sessions are read, the newest first, and as many sessions of a store."""
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

SessionKind = Literal["recorded", "stored"]


class ListedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session in a list; what is not known of it is None.

    `cost`, `cost_today` and `saved` (against sending everything) are in dollars, subagents included.
    `cold_in_seconds` is how long its prompt cache stays warm. `parent` is the row of the session that started
    it as a subagent.
    """

    id: str
    kind: SessionKind
    session_id: str
    title: str
    agent: str
    updated_at: datetime
    project: str | None = None
    model: str | None = None
    started_at: datetime | None = None
    requests: int = 0
    tokens: int | None = None
    limit: int | None = None
    percent: float | None = None
    zone: str | None = None
    cost: float | None = None
    cost_today: float | None = None
    saved: float | None = None
    saved_percent: float | None = None
    cold_in_seconds: float | None = None
    parent: str | None = None
    turns_left: int | None = None


class DayTrend(msgspec.Struct, frozen=True, kw_only=True):
    """What one day cost, over all sessions."""

    day: str
    cost: float
    input: int
    cache_read: int
    cache_write: int
    output: int
    sessions: int


class ProjectTrend(msgspec.Struct, frozen=True, kw_only=True):
    """What one project cost, over all sessions."""

    project: str
    cost: float
    sessions: int


class Trends(msgspec.Struct, frozen=True, kw_only=True):
    """What recorded sessions cost by day and by project, as `ctxgc cost` says it."""

    days: list[DayTrend]
    projects: list[ProjectTrend]


class SessionList:
    """Finds sessions, and keeps what it read of files that have not changed since.

    Args:
        store: whose sessions are listed too; None for recorded ones alone.
        zone: whose days costs are summed up by; by default those of this machine.
    """

    def __init__(self, store: Store | None = None, zone: tzinfo | None = None) -> None:
        self.store = store
        self._zone = zone or datetime.now().astimezone().tzinfo or UTC
        self._read: dict[str, tuple[tuple[int, datetime], SessionReading]] = {}
        self._files: dict[str, Path] = {}

    def rows(self, now: datetime) -> list[ListedSession]:
        """Return the rows of all sessions, newest first, subagents after the session that started them."""
        table = prices_in_use()
        groups = [self._recorded(found, table, now) for found in find_sessions()[:MOST_SESSIONS]]
        stored = [[row] for row in self._stored(table, now)]
        groups = sorted([*filter(None, groups), *stored], key=_newest, reverse=True)
        return list(chain.from_iterable(groups))

    def row(self, row_id: str, now: datetime) -> ListedSession:
        """Return one row.

        Raises:
            InputError: there is no such session.
        """
        table = prices_in_use()
        if row_id.startswith("stored.") and self.store is not None:
            found = [i for i in self._infos() if row_id == stored_row_id(i.session_id)]
            if found:
                return _stored_row(self.store, found[0], table, now)
        for file in find_sessions() if row_id.startswith("recorded.") else ():
            if row_id.startswith(recorded_row_id(file)):
                for row in self._recorded(file, table, now):
                    if row.id == row_id:
                        return row
        raise InputError(
            f"there is no session '{row_id}'", hint="api/sessions lists them", field="id"
        )

    def file_of(self, row_id: str) -> Path:
        """Return the transcript of a recorded session that a row was asked for."""
        return self._files[row_id]

    def requests_of(self, row: ListedSession) -> list[CostedRequest]:
        """Return the requests of a recorded session's file, without those of files of its subagents."""
        known = self._read.get(row.parent or row.id)
        return [] if known is None else known[1].requests.get(str(self._files[row.id]), [])

    def trends(self) -> Trends:
        """Return what the sessions that `rows` read cost by day and by project."""
        readings = [reading for _, reading in self._read.values()]
        readings.sort(key=lambda each: each.overview.updated_at)
        requests = [r for each in readings for part in each.requests.values() for r in part]
        report = total_cost(requests)
        return Trends(
            days=[_day(day, spend, requests) for day, spend in sorted(report.by["day"].items())],
            projects=[
                ProjectTrend(
                    project=name,
                    cost=spend.dollars,
                    sessions=len({r.session_id for r in requests if r.project == name}),
                )
                for name, spend in sorted(
                    report.by["project"].items(), key=lambda item: (-item[1].dollars, item[0])
                )
            ],
        )

    # -- recorded -----------------------------------------------------------------------------------

    def _recorded(
        self, found: SessionFile, table: Sequence[ModelPrice], now: datetime
    ) -> list[ListedSession]:
        name = recorded_row_id(found)
        reading = self._reading(name, found, table)
        self._files[name] = found.path
        today = now.astimezone(self._zone).date().isoformat()
        main = _recorded_row(name, reading, today)
        subagents = []
        for path, requests in list(reading.requests.items())[1:]:
            row = _subagent_row(main, Path(path), requests, today)
            self._files[row.id] = Path(path)
            subagents.append(row)
        return [main, *subagents]

    def _reading(
        self, name: str, found: SessionFile, table: Sequence[ModelPrice]
    ) -> SessionReading:
        state = (found.size, found.updated_at)
        known = self._read.get(name)
        if known is None or known[0] != state:
            known = self._read[name] = (state, read_session(found, table, self._zone))
        return known[1]

    # -- stored -------------------------------------------------------------------------------------

    def _infos(self) -> list[SessionInfo]:
        if self.store is None:
            return []
        try:
            infos = self.store.sessions()
        except StoreError:
            return []
        return sorted(infos, key=lambda info: info.updated_at, reverse=True)

    def _stored(self, table: Sequence[ModelPrice], now: datetime) -> Iterator[ListedSession]:
        for info in self._infos()[:MOST_SESSIONS]:
            if self.store is None:
                return
            try:
                yield _stored_row(self.store, info, table, now)
            except CtxgcError:
                continue


def recorded_row_id(found: SessionFile) -> str:
    """Return the id of the row of a recorded session; it fits into an address as it is."""
    return f"recorded.{_safe(found.session_id)}"


def stored_row_id(session_id: str) -> str:
    """Return the id of the row of a stored session; it fits into an address as it is."""
    return f"stored.{_safe(session_id)}"


def _safe(name: str) -> str:
    if _SAFE.fullmatch(name):
        return name
    return f"x{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=10).hexdigest()}"


def _newest(rows: list[ListedSession]) -> datetime:
    return rows[0].updated_at


def _dollars(spend: Spend) -> float | None:
    return spend.dollars if spend.requests > spend.unpriced else None


def _today(requests: Iterable[CostedRequest], today: str) -> float | None:
    dated = [each for each in requests if each.day in (today, UNKNOWN_DAY)]
    if not dated:
        return 0.0
    return _dollars(total_of(each.spend for each in dated if each.day == today))


def _recorded_row(name: str, reading: SessionReading, today: str) -> ListedSession:
    seen: LocalSession = reading.overview
    return ListedSession(
        id=name,
        kind="recorded",
        session_id=seen.session_id,
        title=seen.title or seen.session_id,
        agent=seen.agent,
        updated_at=seen.updated_at,
        project=seen.project,
        model=seen.model,
        started_at=reading.started_at,
        requests=seen.requests,
        tokens=seen.tokens,
        limit=seen.context_limit,
        percent=seen.percent,
        zone=seen.zone,
        cost=seen.dollars,
        cost_today=_today(chain.from_iterable(reading.requests.values()), today),
        turns_left=seen.turns_left,
    )


def _subagent_row(
    main: ListedSession, path: Path, requests: list[CostedRequest], today: str
) -> ListedSession:
    cost = summed_cost(requests)
    kinds = [each.subagent for each in requests if each.subagent]
    return ListedSession(
        id=f"{main.id}.{_safe(path.stem)}",
        kind="recorded",
        session_id=path.stem,
        title=kinds[0] if kinds else path.stem,
        agent=main.agent,
        updated_at=datetime.fromtimestamp(path.stat().st_mtime, UTC),
        project=main.project,
        model=next(iter(cost.models), None),
        requests=cost.total.requests,
        cost=_dollars(cost.total),
        cost_today=_today(requests, today),
        parent=main.id,
    )


def _day(day: str, spend: Spend, requests: Iterable[CostedRequest]) -> DayTrend:
    return DayTrend(
        day=day,
        cost=spend.dollars,
        input=spend.uncached,
        cache_read=spend.cache_read,
        cache_write=spend.cache_write_5m + spend.cache_write_1h,
        output=spend.output,
        sessions=len({r.session_id for r in requests if r.day == day}),
    )


def _stored_row(
    store: Store, info: SessionInfo, table: Sequence[ModelPrice], now: datetime
) -> ListedSession:
    name = info.session_id
    state = store.get(name, "state", "session") or {}
    sent = read_journal(store, name).requests
    newest = sent[-1] if sent else None
    model = None if newest is None else newest.model
    limit = int(state.get("context_limit") or 0)
    saved = _savings(state)
    fill = None if newest is None or not limit else fill_of(newest.tokens, limit, GCConfig())
    sent_today = [each for each in sent if each.at.date() == now.date()]
    today = 0.0 if sent and not sent_today else _sent_dollars(sent_today, table)
    booked = _booked(store, name)
    return ListedSession(
        id=stored_row_id(name),
        kind="stored",
        session_id=name,
        title=name,
        agent="proxy" if name.startswith("proxy:") else "ctxgc",
        updated_at=info.updated_at,
        started_at=info.created_at,
        model=model,
        requests=int(state.get("requests") or 0),
        tokens=None if newest is None else newest.tokens,
        limit=limit or None,
        percent=None if fill is None else fill.percent,
        zone=None if fill is None else fill.zone,
        cost=_sent_dollars(sent, table) if booked is None else sum(booked.values()),
        cost_today=today if booked is None else booked.get(now.date().isoformat(), 0.0),
        saved=_saved_dollars(saved, model, now, table),
        saved_percent=None if saved.requests == 0 else round(saved.saved_percent, 1),
        cold_in_seconds=_cold_in(newest, now),
        parent=_parent_of(store, name),
    )


def _savings(state: dict[str, Any]) -> Savings:
    try:
        return msgspec.convert(state.get("savings", {}).get("savings", {}), Savings)
    except (msgspec.ValidationError, AttributeError):
        return Savings()


def _booked(store: Store, name: str) -> dict[str, float] | None:
    """Return what the proxy booked for a session, by day: requests that were sent again are in it too."""
    doc = store.get(name, "state", "spent") or {}
    try:
        return msgspec.convert(doc.get("days"), dict[str, float] | None)
    except msgspec.ValidationError:
        return None


def _sent_dollars(sent: Sequence[JournalRequest], table: Sequence[ModelPrice]) -> float | None:
    return _dollars(total_of(sent_spend(each, table) for each in sent))


def _saved_dollars(
    saved: Savings, model: str | None, now: datetime, table: Sequence[ModelPrice]
) -> float | None:
    price = model_price(model, now.date().isoformat(), table)
    return None if price is None or not saved.requests else saved.saved * price.input / 1_000_000


def _cold_in(newest: JournalRequest | None, now: datetime) -> float | None:
    """Return for how long the provider's cache still has the newest request."""
    if newest is None or newest.ttl_seconds is None:
        return None
    return max(0.0, newest.ttl_seconds - (now - newest.at).total_seconds())


def _parent_of(store: Store, name: str) -> str | None:
    """Return the row of the line that a further line of an agent's conversation belongs to."""
    first, colon, number = name.rpartition(":")
    if not (colon and number.isdigit() and first.startswith("proxy:") and store.revision(first)):
        return None
    return stored_row_id(first)
