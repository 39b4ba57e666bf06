"""A session in one row: what it is about, how full it is, what it cost, and how long it can go on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from itertools import chain

import msgspec

from ctxgc.economics import MODEL_PRICES, ModelPrice
from ctxgc.errors import CtxgcError
from ctxgc.insight.cost import CostedRequest, SessionCost, requests_by_file, summed_cost
from ctxgc.insight.live import SessionFollower
from ctxgc.insight.local_sessions import SessionFile, subagent_files


class LocalSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session on this machine; what its file does not tell is None.

    `dollars` is what is known of its cost: `unpriced` of the requests are not in it. `turns_left` is how many
    more requests of the user fit if they fill the window as those in it did.
    """

    agent: str
    session_id: str
    path: str
    size: int
    updated_at: datetime
    project: str | None = None
    title: str | None = None
    model: str | None = None
    tokens: int | None = None
    context_limit: int | None = None
    percent: float | None = None
    zone: str | None = None
    turns: int = 0
    requests: int = 0
    subagents: int = 0
    dollars: float | None = None
    unpriced: int = 0
    turns_left: int | None = None


def session_overview(
    found: SessionFile, table: Sequence[ModelPrice] = MODEL_PRICES
) -> LocalSession:
    """Return a session file in one row; what cannot be read of it is left out."""
    return read_session(found, table).overview


class SessionReading(msgspec.Struct, frozen=True, kw_only=True):
    """A session file that was read once: its row, when it began, and the requests of each of its files."""

    overview: LocalSession
    started_at: datetime | None = None
    requests: dict[str, list[CostedRequest]] = {}


def read_session(
    found: SessionFile, table: Sequence[ModelPrice] = MODEL_PRICES, zone: tzinfo = UTC
) -> SessionReading:
    """Return a session file with its requests, those of its subagents' files included; days are of `zone`."""
    row = LocalSession(
        agent=found.agent, session_id=found.session_id, path=str(found.path), size=found.size,
        updated_at=found.updated_at,
    )  # fmt: skip
    follower = SessionFollower(found.path)
    try:
        follower.look()
        files = {str(path): each for path, each in requests_by_file(found.path, table, zone)}
        return SessionReading(
            overview=_with_facts(row, follower, summed_cost(chain.from_iterable(files.values()))),
            started_at=follower.facts.first_at,
            requests=files,
        )
    except CtxgcError:
        return SessionReading(overview=row)


def _with_facts(row: LocalSession, follower: SessionFollower, cost: SessionCost) -> LocalSession:
    fill, facts, total = follower.fill(), follower.facts, cost.total
    return msgspec.structs.replace(
        row,
        session_id=facts.session_id or row.session_id,
        project=facts.project,
        title=facts.title or follower.first_request or None,
        model=facts.model,
        tokens=fill.tokens,
        context_limit=fill.limit,
        percent=fill.percent,
        zone=fill.zone,
        turns=follower.turns,
        requests=cost.main.requests,
        subagents=follower.subagents + len(subagent_files(follower.path)),
        dollars=total.dollars if total.requests > total.unpriced else None,
        unpriced=total.unpriced,
        turns_left=follower.turns_left(),
    )
