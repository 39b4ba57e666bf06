"""Proposals: what a collection makes of the window of a transcript, with every change explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.config import GCConfig, find_gc_file, read_gc_file
from ctxgc.core.plan import Action, PruningCandidate, PruningPlan, age_text
from ctxgc.core.segment import ContextSegment, SegmentType
from ctxgc.core.tombstone import describe
from ctxgc.errors import PlanError
from ctxgc.invariants import check
from ctxgc.pruning.measure import measure
from ctxgc.pruning.target import Target
from ctxgc.session import Session
from ctxgc.session.stash import RECALL_CALL
from ctxgc.stores import Store
from ctxgc.wire.transcripts.entry import Entry
from ctxgc.wire.transcripts.revision import Addition, Revision, Writable

_WHY = {
    "stashed": "nothing refers to it",
    "unreachable": "nothing refers to it",
    "evacuated": "cold: still reachable, but worth least",
    "low_score": "cold: still reachable, but worth least",
}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One segment that leaves: what it is, why, how, and what recalls it."""

    segment_id: str
    handle: str
    what: str
    why: str
    type: SegmentType
    tokens: int
    action: Action


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What pruning does to a transcript.

    `left_alone` counts messages of the window that break a rule of their provider by themselves, such
    as a call without its result: they stay as they are. `shortfall` is what is missing to the target.
    Tokens are those of whole requests as the provider counts them, where the transcript has its reports;
    `beside` is what of them is no message of the file.
    """

    kind: str
    session_id: str
    messages: int
    left_alone: int
    tokens_before: int
    tokens_after: int
    beside: int
    target: int
    shortfall: int
    strategy: str
    rows: list[Row]
    revision: Revision
    requests_to_pay_back: float | None = None


class _Clock:
    """Stands at the time of the message that comes in."""

    def __init__(self, start: datetime) -> None:
        self.now = start

    def __call__(self) -> datetime:
        return self.now


def store_name(file: Writable, path: Path) -> str:
    """Return the name under which the session of a transcript is kept in stores."""
    if file.session_id is not None:
        return f"{file.kind.replace('_', '-')}-{file.session_id}"
    digest = blake2b(str(path.absolute()).encode("utf-8", "surrogateescape"), digest_size=4)
    return f"file-{path.name.partition('.')[0]}-{digest.hexdigest()}"


def propose(
    file: Writable,
    store: Store,
    session_id: str,
    *,
    target: Target,
    context_limit: int,
    plugin: str | None = None,
    config: GCConfig | None = None,
    recall_call: str = RECALL_CALL,
) -> Proposal:
    """Collect the window of a transcript; what leaves it is durable in the store on return.

    A session that the store knows is taken back to what its agent wrote, and goes on from there: the
    handles of an earlier pruning stay good. `recall_call` is what tombstones tell the model to call.

    Raises:
        CtxgcError: the session could not be collected; the transcript is not touched by this.
    """
    entries, measured = sound(file.entries), measure(file)
    clock = _Clock(_first_time(entries))
    session = Session(
        context_limit, store=store, session_id=session_id, plugin=plugin, clock=clock,
        config=_by_hand(config), counter=measured.counter, recall_call=recall_call,
    )  # fmt: skip
    _take_in(session, entries, clock)
    beside = measured.beside
    wanted = target.resolve(session.usage().total_tokens, context_limit, beside)
    plan = session.plan(max(0, wanted - beside))
    result = session.collect(max(0, wanted - beside))
    session.flush()
    if result.error is not None:
        raise PlanError(f"nothing was pruned: {result.error}", hint="choose another --strategy")
    handle_of = _handles(store, session_id)
    return Proposal(
        kind=file.kind,
        session_id=session_id,
        messages=len(file.entries),
        left_alone=len(file.entries) - len(entries),
        tokens_before=result.tokens_before + beside,
        tokens_after=result.tokens_after + beside,
        beside=beside,
        target=wanted,
        shortfall=max(0, result.tokens_after + beside - wanted) if result.shortfall else 0,
        strategy=result.plugin_name,
        rows=_rows(plan, {s.segment_id: s for s in session.segments()}, handle_of),
        revision=msgspec.structs.replace(
            revise(session, entries),
            reported=measured.without(result.tokens_before - result.tokens_after),
            beside=beside,
        ),
        requests_to_pay_back=result.details.get("requests_to_pay_back"),
    )


def sound(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that make up a valid history; one that breaks a rule is left out."""
    parsed = [(entry, entry.message()) for entry in entries]
    kept = [(entry, message) for entry, message in parsed if message is not None]
    while broken := {v.index for v in check([m for _, m in kept], complete=False)}:
        kept = [pair for place, pair in enumerate(kept) if place not in broken]
    return [entry for entry, _ in kept]


def revise(session: Session, entries: Sequence[Entry]) -> Revision:
    """Return how the view of a session differs from the entries that came in, in this order."""
    entry_of = dict(zip(session.arrivals(), entries, strict=True))
    shown = {message.message_id: message.data for message in session.history}
    edited = {
        entry.message_id: shown[name]
        for name, entry in entry_of.items()
        if name in shown and shown[name] != entry.data
    }
    gone = frozenset(e.message_id for name, e in entry_of.items() if name not in shown)
    added, following = [], None
    for message in reversed(session.history):
        if message.message_id in entry_of:
            following = entry_of[message.message_id].message_id
        else:
            added.append(Addition(following, message.data))
    return Revision(gone=gone, edited=edited, added=tuple(reversed(added)))


def _take_in(session: Session, entries: Sequence[Entry], clock: _Clock) -> None:
    """Let the session know what its agent wrote, each message at its time."""
    form = entries[0].format if entries else None
    if not session.arrivals():
        for entry in entries:
            clock.now = max(clock.now, entry.written_at or clock.now)
            session.append(entry.data, form)
        return
    clock.now = max([clock.now, *(e.written_at for e in entries if e.written_at is not None)])
    try:
        while True:
            session.undo()
    except PlanError:  # nothing is left to undo
        session.sync([entry.data for entry in entries], form)


def configured() -> GCConfig:
    """Return the configuration in force here: the environment over the file over the defaults."""
    path = find_gc_file()
    return GCConfig() if path is None else read_gc_file(path).config()


def _by_hand(config: GCConfig | None) -> GCConfig:
    """Only what is asked for is collected."""
    return (config or configured()).replace(auto_trigger=False, auto_recall=False)


def _first_time(entries: Sequence[Entry]) -> datetime:
    times = [entry.written_at for entry in entries if entry.written_at is not None]
    return min(times, default=datetime(2000, 1, 1, tzinfo=UTC))


def _handles(store: Store, session_id: str) -> Callable[[str], str]:
    docs: dict[str, dict[str, Any]] = dict(store.load(session_id, "segments"))
    return lambda segment_id: str(docs.get(segment_id, {}).get("handle", segment_id))


def _rows(
    plan: PruningPlan, known: dict[str, ContextSegment], handle_of: Callable[[str], str]
) -> list[Row]:
    rows = []
    for candidate in plan.candidates:
        segment = known[candidate.segment_id]
        row = Row(
            segment_id=candidate.segment_id,
            handle=handle_of(candidate.segment_id),
            what=describe(segment),
            why=_why(segment, candidate),
            type=segment.type,
            tokens=candidate.tokens,
            action=candidate.action,
        )
        rows.append(row)
    return sorted(rows, key=lambda row: -row.tokens)


def _why(segment: ContextSegment, candidate: PruningCandidate) -> str:
    reason = candidate.reason.partition(";")[0]
    if segment.superseded_by is not None:
        said = f"superseded ({segment.superseded_how})"
    else:
        said = _WHY.get(reason, reason.replace("_", " "))
    return f"{said}, {age_text(candidate.age)} old" if candidate.age >= 1 else said
