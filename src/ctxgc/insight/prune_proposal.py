"""What pruning makes of a coding agent's transcript: which segments leave, why, and the new file.

A target says where to land; `propose_pruning` collects the window of a transcript in a session and explains
every change; `pruned_transcript` returns the new file, checked as its agent would read it. Nothing here
writes to the transcript.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.config import GCConfig, load_config
from ctxgc.core import (
    Action,
    ContextSegment,
    PruningCandidate,
    PruningPlan,
    SegmentType,
    age_text,
    describe,
)
from ctxgc.errors import InputError, PlanError
from ctxgc.insight.clock import LONG_AGO, TranscriptClock
from ctxgc.insight.fill import count_window
from ctxgc.insight.transcript_edit import revision_between
from ctxgc.invariants import check
from ctxgc.session import Session
from ctxgc.stores import Store
from ctxgc.tokens import (
    QUORUM,
    Calibration,
    EstimatedCounter,
    Reported,
    TokenCounter,
    counter_for,
    message_tokens,
    scale_of,
    tokens_before,
)
from ctxgc.wire import dump, validate
from ctxgc.wire.transcripts import (
    Revision,
    TranscriptEntry,
    Writable,
    whole_messages,
    writable,
)

# -- How the provider counts the window


class ReportedWindow(msgspec.Struct, frozen=True, kw_only=True):
    """How the provider counts the window of a transcript.

    `beside` is what a request holds besides the messages of the file, such as the system prompt;
    `prompt` is the size of the newest request, None if nothing is reported.
    """

    counter: TokenCounter
    beside: int = 0
    prompt: int | None = None

    def without(self, tokens: int) -> int | None:
        """Return the size of the newest request if its messages had this many tokens fewer."""
        return None if self.prompt is None else max(self.beside, self.prompt - tokens)


def reported_window(file: Writable) -> ReportedWindow:
    """Return how to count the window of a transcript: by its usage reports, or else in o200k tokens."""
    if not file.usages:
        return ReportedWindow(counter=counter_for(None))
    counter = counter_for(file.facts.model)
    sizes = [(entry.line, _size(entry, counter)) for entry in file.entries]
    counted = tokens_before(sizes, [usage.line for usage in file.usages])
    reports = [Reported(n, u.prompt, u.beside) for n, u in zip(counted, file.usages, strict=True)]
    scale = scale_of(reports)
    if scale is None or not isinstance(counter, EstimatedCounter):
        scale = 1.0
    else:
        counter.calibration = Calibration([scale] * QUORUM)
    return ReportedWindow(
        counter=counter,
        beside=max(0, reports[-1].prompt - round(reports[-1].counted * scale)),
        prompt=reports[-1].prompt,
    )


def _size(entry: TranscriptEntry, counter: TokenCounter) -> int:
    message = entry.message()
    return counter.count(dump(entry.data)) if message is None else message_tokens(message, counter)


# -- The target


PRESETS: Mapping[str, int] = {"gentle": 75, "balanced": 50, "tight": 25}
"""Shares of the present messages, in percent."""

_NUMBER = re.compile(r"(\d[\d_,]*(?:\.\d+)?)\s*(k|m|%)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


class PruneTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The size to reach: exactly one of the three is set."""

    tokens: int | None = None
    percent_of_window: float | None = None
    percent_of_present: float | None = None

    @classmethod
    def parse(cls, text: str) -> PruneTarget:
        """Return the target of a text: `80k`, `120000`, or `50%` of the window.

        Raises:
            InputError: it is not a target.
        """
        match = _NUMBER.fullmatch(text.strip())
        if match is None:
            raise _no_target(text)
        number, unit = float(re.sub("[_,]", "", match[1])), (match[2] or "").lower()
        if unit != "%":
            return cls(tokens=int(number * _UNITS[unit]))
        if not 0 < number <= 100:
            raise _no_target(text)
        return cls(percent_of_window=number)

    @classmethod
    def preset(cls, name: str) -> PruneTarget:
        """Return the target of a preset.

        Raises:
            InputError: there is no such preset.
        """
        if name not in PRESETS:
            raise InputError(
                f"there is no preset {name!r}", hint=f"use {', '.join(PRESETS)}", field="preset"
            )
        return cls(percent_of_present=PRESETS[name])

    def resolve(self, present: int, context_limit: int, beside: int = 0) -> int:
        """Return the tokens to reach; `beside` are tokens of a request that pruning cannot remove."""
        if self.tokens is not None:
            return self.tokens
        if self.percent_of_window is not None:
            return int(context_limit * self.percent_of_window / 100)
        return beside + int(present * (self.percent_of_present or 100) / 100)


def _no_target(text: str) -> InputError:
    return InputError(
        f"the target cannot be {text!r}",
        hint="give tokens (80k, 120000) or a share of the window (50%)",
        field="target",
    )


# -- The proposal


class ProposalRow(msgspec.Struct, frozen=True, kw_only=True):
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

    `messages` are those of the window. `left_alone` counts entries that break a rule of their provider by
    themselves, such as a call without its result: they stay. `shortfall` is how far the target was missed.
    Tokens are those of whole requests as the provider counts them, if the transcript has its reports;
    `beside` of them are not messages of the file.
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
    rows: list[ProposalRow]
    revision: Revision
    requests_to_pay_back: float | None = None
    project: str | None = None

    @property
    def percent_less(self) -> float:
        """By how much the window shrinks, in percent."""
        freed = self.tokens_before - self.tokens_after
        return round(100.0 * freed / self.tokens_before, 1) if self.tokens_before else 0.0


def stored_session_id(file: Writable, path: Path) -> str:
    """Return the name under which the session of a transcript is kept in stores."""
    if file.session_id is not None:
        return f"{file.kind.replace('_', '-')}-{file.session_id}"
    digest = blake2b(str(path.absolute()).encode("utf-8", "surrogateescape"), digest_size=4)
    return f"file-{path.name.partition('.')[0]}-{digest.hexdigest()}"


def propose_pruning(
    file: Writable,
    store: Store,
    session_id: str,
    *,
    target: PruneTarget,
    context_limit: int,
    plugin: str | None = None,
    config: GCConfig | None = None,
    recall_call: str | None = None,
) -> Proposal:
    """Collect the window of a transcript; what leaves it is durable in the store on return.

    A session that the store has is rolled back to what its agent wrote and continued from there: the
    handles of an earlier pruning stay valid. `recall_call` is what tombstones tell the model to call; None
    where the reader of the transcript has no way to recall, so that no handle is named.

    Raises:
        CtxgcError: the session could not be collected; the transcript is not touched by this.
    """
    entries, measured = valid_entries(file.entries), reported_window(file)
    clock = TranscriptClock(_first_time(entries))
    session = Session(
        context_limit, store=store, session_id=session_id, plugin=plugin, clock=clock,
        config=_by_hand(config), counter=measured.counter, recall_call=recall_call,
    )  # fmt: skip
    _take_in(session, entries, clock)
    window = count_window(file.window, file.kind, file.facts, counter_for(None))
    wanted = target.resolve(window.tokens - window.beside, context_limit, window.beside)
    to_reach = max(0, wanted - window.tokens + session.usage().total_tokens)
    plan = session.plan(to_reach)
    result = session.collect(to_reach)
    after = window.tokens - max(0, result.tokens_before - result.tokens_after)
    session.flush()
    if result.error is not None:
        raise PlanError(f"nothing was pruned: {result.error}", hint="choose another --strategy")
    handle_of = _handles(store, session_id)
    return Proposal(
        project=file.facts.project,
        kind=file.kind,
        session_id=session_id,
        messages=len(list(whole_messages(file.entries))),
        left_alone=len(file.entries) - len(entries),
        tokens_before=window.tokens,
        tokens_after=after,
        beside=window.beside,
        target=wanted,
        shortfall=max(0, after - wanted) if result.shortfall else 0,
        strategy=result.plugin_name,
        rows=_rows(plan, {s.segment_id: s for s in session.segments()}, handle_of),
        revision=msgspec.structs.replace(
            _revision(session, entries),
            reported=measured.without(result.tokens_before - result.tokens_after),
            beside=measured.beside,
        ),
        requests_to_pay_back=result.details.get("requests_to_pay_back"),
    )


def valid_entries(entries: Sequence[TranscriptEntry]) -> list[TranscriptEntry]:
    """Return the entries that make up a valid history, without those that break a rule."""
    parsed = [(entry, entry.message()) for entry in entries]
    kept = [(entry, message) for entry, message in parsed if message is not None]
    while broken := {v.index for v in check([m for _, m in kept], complete=False)}:
        kept = [pair for place, pair in enumerate(kept) if place not in broken]
    return [entry for entry, _ in kept]


def _revision(session: Session, entries: Sequence[TranscriptEntry]) -> Revision:
    """Return how the view of a session differs from the entries that came in, in this order."""
    pairs = zip(session.arrivals(), entries, strict=True)
    entry_of = {arrival: entry.message_id for arrival, entry in pairs}
    view = [(entry_of.get(message.message_id), message.data) for message in session.history]
    return revision_between(entries, view)


def _take_in(session: Session, entries: Sequence[TranscriptEntry], clock: TranscriptClock) -> None:
    """Give the session what its agent wrote, each message at its time."""
    form = entries[0].format if entries else None
    if not session.arrivals():
        for entry in entries:
            clock.advance(entry.written_at)
            session.append(entry.data, form)
        return
    for entry in entries:
        clock.advance(entry.written_at)
    try:
        while True:
            session.undo()
    except PlanError:  # nothing is left to undo
        session.sync([entry.data for entry in entries], form)


def _by_hand(config: GCConfig | None) -> GCConfig:
    """Return the configuration without anything that acts by itself."""
    return (config or load_config()).replace(auto_trigger=False, auto_recall=False)


def _first_time(entries: Sequence[TranscriptEntry]) -> datetime:
    times = [entry.written_at for entry in entries if entry.written_at is not None]
    return min(times, default=LONG_AGO)


def _handles(store: Store, session_id: str) -> Callable[[str], str]:
    docs: dict[str, dict[str, Any]] = dict(store.load(session_id, "segments"))
    return lambda segment_id: str(docs.get(segment_id, {}).get("handle", segment_id))


def _rows(
    plan: PruningPlan, known: dict[str, ContextSegment], handle_of: Callable[[str], str]
) -> list[ProposalRow]:
    rows = []
    for candidate in plan.candidates:
        segment = known[candidate.segment_id]
        row = ProposalRow(
            segment_id=candidate.segment_id,
            handle=handle_of(candidate.segment_id),
            what=describe(segment),
            why=_why(candidate, segment),
            type=segment.type,
            tokens=candidate.tokens,
            action=candidate.action,
        )
        rows.append(row)
    return sorted(rows, key=lambda row: -row.tokens)


def _why(candidate: PruningCandidate, segment: ContextSegment) -> str:
    is_known = segment.created_at > LONG_AGO and candidate.age >= 1
    return f"{candidate.reason}, {age_text(candidate.age)} old" if is_known else candidate.reason


# -- The new file


def pruned_transcript(file: Writable, proposal: Proposal, new_id: str | None = None) -> bytes:
    """Return the transcript after a proposal.

    It is read back as its agent would read it: the window must hold what the proposal says and break
    no rule that it did not break before.

    Raises:
        PlanError: the check failed.
    """
    data = file.write(proposal.revision, new_id)
    again = writable(data, name="the pruned transcript")
    wanted = _window_after(file, proposal.revision)
    found = [entry.data for entry in again.entries]
    if found != wanted:
        place = next(
            (n for n, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), -1
        )
        raise _refused(f"message {place} of {len(wanted)} is not what was planned")
    newest, most = (again.usages[-1:], proposal.revision.reported)
    if newest and most is not None and newest[0].prompt > most:
        raise _refused(f"its newest request reports {newest[0].prompt} tokens, not {most}")
    before = {v.text for v in validate([e.data for e in file.entries], file.format, complete=False)}
    broken = [v for v in validate(found, file.format, complete=False) if v.text not in before]
    if broken:
        raise _refused(f"{broken[0].text} ({broken[0].promise})")
    return data


def _window_after(file: Writable, revision: Revision) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []
    for entry in file.entries:
        messages += [addition.data for addition in revision.before(entry.message_id)]
        if entry.message_id not in revision.gone:
            messages.append(revision.edited.get(entry.message_id, entry.data))
    return [*messages, *(addition.data for addition in revision.before(None))]


def _refused(why: str) -> PlanError:
    return PlanError(
        f"the pruned transcript would be wrong: {why}",
        hint="nothing was written; choose another --strategy or --target",
    )
