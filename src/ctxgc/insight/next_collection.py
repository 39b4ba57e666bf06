"""The next collection before it happens, tried on a copy: reasons, tokens, dollars, what would change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.collector import GCResult
from ctxgc.config import SessionSettings, load_config
from ctxgc.core import Action, ContextSegment, PruningCandidate
from ctxgc.economics import model_price
from ctxgc.insight.cost import prices_in_use
from ctxgc.insight.fill import window_limit
from ctxgc.insight.prune_proposal import (
    ProposalRow,
    PruneTarget,
    propose_pruning,
    stored_session_id,
    valid_entries,
)
from ctxgc.insight.timeline import segment_label
from ctxgc.session import Session, copy_in_memory, open_store, read_journal
from ctxgc.stores import Store
from ctxgc.wire.transcripts import Writable, open_writable, whole_messages

_MOST_SHOWN = 200
_LONGEST_TEXT = 20_000
_USUAL = "balanced"


class PlannedMove(msgspec.Struct, frozen=True, kw_only=True):
    """One segment that would leave; `dollars` is what each further request would no longer pay to read it."""

    segment: str
    label: str
    action: Action
    why: str
    tokens: int
    dollars: float | None = None


class PlannedText(msgspec.Struct, frozen=True, kw_only=True):
    """What the model sees of a segment now, and what it would see; None is nothing."""

    segment: str
    before: str
    after: str | None


class NextCollection(msgspec.Struct, frozen=True, kw_only=True):
    """What a collection would do now: nothing was changed to find it out.

    `rewritten` tokens would be written to the cache again. `requests_to_pay_back` is None if it never pays,
    or if that is not known.
    """

    entries: list[PlannedMove]
    tokens_before: int
    tokens_after: int
    rewritten: int
    requests_to_pay_back: float | None
    dollars_saved_per_request: float | None
    diff: list[PlannedText]
    error: str | None = None


def stored_next(
    store: Store, session_id: str, now: datetime, target_tokens: int | None = None
) -> NextCollection:
    """Return what a collection of a stored session would do.

    Raises:
        CtxgcError: the session cannot be opened, or the target is none.
    """
    trial, model = copy_in_memory(store, session_id), model_of(store, session_id)
    with Session(
        context_limit_of(store, session_id), store=trial, session_id=session_id, model=model,
        clock=lambda: now,
    ) as session:  # fmt: skip
        plan = session.plan(target_tokens)
        before = {segment.segment_id: segment for segment in session.segments()}
        result = session.collect(target_tokens)
        return _next(
            result,
            [_move(before[c.segment_id], c, model) for c in plan.candidates],
            _diff(session, [c.segment_id for c in plan.candidates], {}),
            model,
        )


def recorded_next(path: Path, target_tokens: int | None = None) -> NextCollection:
    """Return what `ctxgc prune` would do to a recorded session, by default with its usual target.

    Raises:
        CtxgcError: the session cannot be pruned, or the target is none.
    """
    file, trial = open_writable(path), open_store("memory:")
    name, model = stored_session_id(file, path), file.facts.model
    limit = SessionSettings.from_env().context_limit or window_limit(file.facts, file.window)
    usual = PruneTarget.preset(_USUAL)
    proposal = propose_pruning(
        file, trial, name, context_limit=limit, config=load_config(),
        target=usual if target_tokens is None else PruneTarget(tokens=target_tokens),
    )  # fmt: skip
    with Session(limit, store=trial, session_id=name, plugin="gc_none") as session:
        known = {segment.segment_id: segment for segment in session.segments()}
        names = dict(_names(file, session))
        result = session.gc_history[-1]
        moves = [
            msgspec.structs.replace(
                _move(known[row.segment_id], row, model), segment=names[row.segment_id]
            )
            for row in proposal.rows
        ]
        found = _next(
            result, moves, _diff(session, [r.segment_id for r in proposal.rows], names), model
        )
    return msgspec.structs.replace(
        found, tokens_before=proposal.tokens_before, tokens_after=proposal.tokens_after
    )


def context_limit_of(store: Store, session_id: str) -> int | None:
    """Return the window of a stored session in tokens; None if it never had one."""
    state = store.get(session_id, "state", "session") or {}
    return int(state.get("context_limit") or 0) or None


def model_of(store: Store, session_id: str) -> str | None:
    """Return the model that a stored session was last sent to; None if it is not known."""
    sent = read_journal(store, session_id).requests
    return sent[-1].model if sent else None


def _names(file: Writable, session: Session) -> Iterator[tuple[str, str]]:
    """Yield the segments of a trial with the names that the timeline has for them."""
    entries = valid_entries(file.entries)
    arrivals = dict(zip((e.message_id for e in entries), session.arrivals(), strict=True))
    own: dict[str, list[ContextSegment]] = {}
    for segment in session.segments():
        if segment.derived_from is None:
            own.setdefault(segment.message_id or "", []).append(segment)
    for whole in whole_messages(file.entries):
        place = 0
        for message_id in whole.message_ids:
            for segment in own.get(arrivals.get(message_id, ""), ()):
                yield segment.segment_id, f"{whole.message_ids[0]}.{place}"
                place += 1


def _move(
    segment: ContextSegment, said: PruningCandidate | ProposalRow, model: str | None
) -> PlannedMove:
    if isinstance(said, ProposalRow):
        tokens, why = said.tokens, said.why
    else:
        tokens, why = said.freed, said.reason
    return PlannedMove(
        segment=segment.segment_id,
        label=segment_label(segment),
        action=said.action,
        why=why,
        tokens=tokens,
        dollars=_read_dollars(tokens, model),
    )


def _diff(session: Session, moved: list[str], names: Mapping[str, str]) -> list[PlannedText]:
    known = {segment.segment_id: segment for segment in session.segments()}
    shown = {
        segment.derived_from: segment.text
        for segment in known.values()
        if segment.tier == "working" and segment.derived_from is not None
    }
    return [
        PlannedText(
            segment=names.get(name, name),
            before=known[name].text[:_LONGEST_TEXT],
            after=None if name not in shown else shown[name][:_LONGEST_TEXT],
        )
        for name in moved[:_MOST_SHOWN]
        if name in known
    ]


def _next(
    result: GCResult, entries: list[PlannedMove], diff: list[PlannedText], model: str | None
) -> NextCollection:
    details: dict[str, Any] = result.details
    return NextCollection(
        entries=sorted(entries, key=lambda each: -each.tokens),
        tokens_before=result.tokens_before,
        tokens_after=result.tokens_after,
        rewritten=int(details.get("tokens_rewritten", 0)),
        requests_to_pay_back=details.get("requests_to_pay_back"),
        dollars_saved_per_request=_read_dollars(result.tokens_freed, model),
        diff=diff,
        error=result.error,
    )


def _read_dollars(tokens: int, model: str | None) -> float | None:
    """Return what a request pays for tokens that it reads from the cache; None if no price is known."""
    price = model_price(model, table=prices_in_use())
    return None if price is None else max(0, tokens) * price.read / 1_000_000
