"""The board: what is known of each session that is open, for metrics, status lines and the dashboard."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import msgspec

from ctxgc.errors import CtxgcError
from ctxgc.insight import ColdMoment, cold_moment
from ctxgc.proxy.conversations import PREFIX, Conversations, Line
from ctxgc.proxy.metrics import ProxyLedger, metric


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session that is open: how full it is, what it cost and saved, and when its cache lapses."""

    session: str
    model: str | None
    tokens: int
    context_limit: int
    ledger: ProxyLedger
    spent: float
    cold: ColdMoment | None
    shown_at: datetime

    def is_called(self, name: str | None) -> bool:
        """Return whether this is the session of a name, which may be the agent's own; None fits all."""
        own = self.session.removeprefix(PREFIX).partition(":")[2]
        return name is None or name in (self.session, own)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        found["ledger"]["saved_percent"] = self.ledger.saved_percent
        found["cold"] = None if self.cold is None else self.cold.to_dict(self.shown_at)
        return found


class SessionBoard:
    """Looks at the open sessions; what does not change between two requests is worked out once."""

    def __init__(self, conversations: Conversations, clock: Callable[[], datetime]) -> None:
        self._conversations = conversations
        self._clock = clock
        self._lock = threading.Lock()
        self._moments: dict[str, tuple[int, ColdMoment | None]] = {}

    def rows(self, prefix: str) -> list[SessionRow]:
        """Return those whose names begin so, the one that was heard of last first."""
        with self._lock:
            lines = [line for each in self._conversations.open_now() for line in each.lines]
            names = {line.name for line in lines}
            self._moments = {n: known for n, known in self._moments.items() if n in names}
            mine = [line for line in lines if line.name.startswith(prefix)]
            return [self._row(line) for line in reversed(mine)]

    def _row(self, line: Line) -> SessionRow:
        session = line.session
        return SessionRow(
            session=line.name,
            model=line.asked.model,
            tokens=session.budget.total_tokens(),
            context_limit=session.context_limit,
            ledger=ProxyLedger.of(session),
            spent=sum(line.spent.values()),
            cold=self._moment(line),
            shown_at=self._clock(),
        )

    def _moment(self, line: Line) -> ColdMoment | None:
        revision = line.session.inspect().archive.revision
        known = self._moments.get(line.name)
        if known is None or known[0] != revision:
            known = (revision, _moment_of(line))
            self._moments[line.name] = known
        return known[1]


def _moment_of(line: Line) -> ColdMoment | None:
    try:
        return cold_moment(line.session)
    except CtxgcError:
        return None  # such as a call that still waits for its result


_SHOWN = (
    ("cold_in_seconds", "Seconds until the cache of a session lapses."),
    ("resume_dollars", "What the next request costs once the cache has lapsed."),
    ("resume_collected_dollars", "The same after the collection that is due then."),
    ("spent_dollars", "What a session has cost, by the counts of its provider."),
)


def rows_text(rows: Iterable[SessionRow]) -> str:
    """Return what is known of sessions as Prometheus reads it."""
    values: dict[str, list[tuple[dict[str, str], float]]] = {name: [] for name, _ in _SHOWN}
    for row in rows:
        cold, label = row.cold, {"session": row.session}
        values["spent_dollars"].append((label, row.spent))
        if cold is None:
            continue
        values["cold_in_seconds"].append((label, cold.seconds_left(row.shown_at)))
        if cold.dollars is not None and cold.dollars_after is not None:
            values["resume_dollars"].append((label, cold.dollars))
            values["resume_collected_dollars"].append((label, cold.dollars_after))
    return "".join(metric(f"session_{name}", "gauge", said, values[name]) for name, said in _SHOWN)
