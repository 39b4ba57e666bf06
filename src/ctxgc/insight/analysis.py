"""Analysis: from a transcript to an insight."""

from __future__ import annotations

import msgspec

from ctxgc.config import GCConfig
from ctxgc.economics import PriceSheet
from ctxgc.insight import parts
from ctxgc.insight.advising import advise
from ctxgc.insight.garbage import REASONS, Dead, find_garbage
from ctxgc.insight.measured import Measured, Tell
from ctxgc.insight.replay import Bills, Replay
from ctxgc.insight.report import Bill, Garbage, Insight, Reason
from ctxgc.insight.requests import paid
from ctxgc.wire.transcripts import Transcript

MOST_DEAD = 20
MOST_REPLAYED = 1_200
"""Messages of one window that are replayed; what real windows hold is far below it."""
_LEAST_ROOM = 1_000


def analyze_transcript(
    transcript: Transcript,
    *,
    context_limit: int | None = None,
    prices: str | PriceSheet | None = None,
    config: GCConfig | None = None,
    tell: Tell = lambda _stage, _done, _all: None,
) -> Insight:
    """Return what can be found out about a recorded session.

    Args:
        transcript: the session.
        context_limit: the model's window in tokens; else what the file or the model's name says.
        prices: the price sheet for bills; else that of the session's provider.
        config: where the zones begin.
        tell: hears about the progress.
    """
    measured = Measured(
        transcript,
        context_limit=context_limit,
        prices=prices,
        config=config or GCConfig(),
        tell=tell,
    )
    found = _insight(measured)
    found.notes = _notes(measured, found)
    found.advice = advise(found)
    return found


def _insight(measured: Measured) -> Insight:
    passed, survey, now = measured.passed, measured.passed.survey, measured.now
    return Insight(
        about=parts.about(measured),
        scale=None if measured.scale is None else round(measured.scale, 3),
        estimated=measured.scaled(survey.sizer.estimated),
        messages=survey.messages,
        tokens=measured.scaled(survey.total),
        requests=len(passed.requests),
        window=parts.window_now(measured),
        sources=parts.rows(measured, survey.sources, now.sources),
        tools=parts.rows(measured, survey.tools, now.tools),
        files=parts.rows(measured, survey.files, now.files),
        turns=parts.turns(measured),
        fill=parts.fill(measured),
        zones=parts.zones(measured),
        compactions=passed.compactions,
        garbage=_garbage(measured),
        bill=_bill(measured),
        cache=parts.cache(measured),
        damaged=measured.transcript.damaged + survey.unknown,
        damage=measured.transcript.damage,
    )


def _garbage(measured: Measured) -> Garbage:
    dead: list[Dead] = []
    whole = 0
    for number, view in enumerate(measured.windows):
        measured.tell("garbage", number, len(measured.windows))
        found = find_garbage(view, measured.counter)
        whole += measured.scaled(found.tokens)
        dead += [
            msgspec.structs.replace(each, tokens=measured.scaled(each.tokens))
            for each in found.dead
        ]
    tokens = sum(each.tokens for each in dead)
    return Garbage(
        windows=len(measured.windows),
        of_tokens=whole,
        tokens=tokens,
        percent=round(100.0 * tokens / whole, 1) if whole else 0.0,
        reasons=[_reason(name, dead) for name in REASONS],
        largest=sorted(dead, key=lambda each: (-each.tokens, each.line))[:MOST_DEAD],
    )


def _reason(name: str, dead: list[Dead]) -> Reason:
    mine = [each.tokens for each in dead if each.reason == name]
    return Reason(reason=name, tokens=sum(mine), count=len(mine))


def _bill(measured: Measured) -> Bill:
    bills = _replayed(measured)
    usages = [*measured.passed.usages, *measured.passed.side_usages]
    return Bill(
        prices=measured.sheet.name,
        paid=round(paid(usages, measured.sheet)) if usages else None,
        side_requests=len(measured.passed.side_usages),
        output=sum(usage.output for usage in usages),
        replayed=bills,
        saved_percent=round(bills.saved_percent, 1),
    )


def _replayed(measured: Measured) -> Bills:
    """Replay in tokens of ours, and give the bills in the provider's."""
    scale = measured.scale or 1.0
    room = max(_LEAST_ROOM, int((measured.limit - measured.beside) / scale))
    beside = int(measured.beside / scale)
    replay = Replay(measured.counter, measured.sheet, limit=room, beside=beside)
    total, played = sum(map(len, measured.windows)), 0
    for view in measured.windows:
        measured.tell("replaying", played, total)
        replay.window(view[-MOST_REPLAYED:])
        played += len(view)
    bills = replay.bills
    for name in ("without", "with_", "sent_without", "sent_with"):
        setattr(bills, name, measured.scaled(getattr(bills, name)))
    return bills


def _notes(measured: Measured, found: Insight) -> list[str]:
    is_reported = bool(measured.passed.usages)
    stopped = found.bill.replayed.stopped
    notes = [
        (
            measured.scale is not None,
            f"Tokens are the provider's: {measured.scale or 1:.2f} for one of o200k, by its usage.",
        ),
        (
            is_reported and not measured.transcript.facts.tools,
            "System prompt and tools are not in the file; what stands beside the messages is from the usage.",
        ),
        (
            not is_reported,
            "The file reports no usage: sizes are counted, and the cache is not known.",
        ),
        (
            found.estimated > 0,
            "The session is estimated by length from a counted sample; the window now is counted.",
        ),
        (
            not measured.is_whole,
            "Garbage and bills are those of the last window: the file is large.",
        ),
        (
            measured.is_trimmed,
            "More was said than the window holds: garbage and bills are those of its last part.",
        ),
        (
            any(len(view) > MOST_REPLAYED for view in measured.windows),
            f"Of each window the last {MOST_REPLAYED:,} messages were replayed for the bill.",
        ),
        (bool(stopped), f"A replay ended early: {stopped}."),
    ]
    return [text for is_so, text in notes if is_so]
