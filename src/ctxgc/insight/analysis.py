"""From a transcript to an `Insight`: its parts, its notes and its advice."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from ctxgc.config import GCConfig
from ctxgc.economics import PriceSheet
from ctxgc.errors import CtxgcError
from ctxgc.insight import bill
from ctxgc.insight.garbage import NEVER_CALLED, Garbage, find_garbage
from ctxgc.insight.measurement import Measurement, ProgressCallback
from ctxgc.insight.prune_proposal import Proposal
from ctxgc.insight.replay import SessionRequest, cache_breaks
from ctxgc.insight.report import (
    About,
    Advice,
    Cache,
    FillPoint,
    Insight,
    PrunePreview,
    UsageRow,
    WindowNow,
)
from ctxgc.insight.survey import Tally, UserTurn, largest
from ctxgc.wire.transcripts import Transcript

_MOST_ROWS = 40
_MOST_POINTS = 400
_MOST_BREAKS = 200
ZONES = ("safe", "warning", "danger", "critical")
_FULL = 70.0
_MUCH_LESS = 10.0
_MUCH_OUTSIDE = 0.2
_HUGE_OUTPUT = 8_000
_MANY_READS = 4
_MANY_SCHEMAS, _NAMED = 2_000, 3


def analyze_transcript(
    transcript: Transcript,
    *,
    context_limit: int | None = None,
    prices: str | PriceSheet | None = None,
    config: GCConfig | None = None,
    progress: ProgressCallback = lambda _stage, _done, _all: None,
    preview: Callable[[], Proposal] | None = None,
) -> Insight:
    """Return where the tokens of a recorded session went, what was garbage, and what it cost.

    Args:
        transcript: the session.
        context_limit: the model's window in tokens; by default what the file or the model's name says.
        prices: the price sheet for bills; by default that of the session's provider.
        config: gives the limits of the zones.
        progress: is called with the stage, the work done and the total.
        preview: returns what pruning the session would do, by the means of the command for it; without it
            nothing is advised about pruning.
    """
    measured = Measurement(
        transcript,
        context_limit=context_limit,
        prices=prices,
        config=config or GCConfig(),
        progress=progress,
    )
    found = _insight(measured)
    found.prune = None if preview is None else _previewed(preview)
    found.notes = _notes(measured, found)
    found.advice = list(_steps(found, context_limit))
    return found


def _insight(measured: Measurement) -> Insight:
    passed, survey, now = measured.passed, measured.passed.survey, measured.now
    return Insight(
        about=_about(measured),
        scale=None if measured.scale is None else round(measured.scale, 3),
        messages=survey.messages,
        tokens=measured.scaled(survey.total),
        requests=len(passed.requests),
        window=_window_now(measured),
        sources=_rows(measured, survey.sources, now.sources),
        tools=_rows(measured, survey.tools, now.tools),
        files=_rows(measured, survey.files, now.files),
        turns=_turns(measured),
        fill=_fill(measured),
        zones=_zones(measured),
        compactions=passed.compactions,
        garbage=_garbage(measured),
        bill=bill.make_bill(measured),
        cache=_cache(measured),
        damaged=measured.transcript.damaged + survey.unknown,
        damage=measured.transcript.damage,
    )


# -- Parts


def _garbage(measured: Measurement) -> Garbage:
    """Return the garbage in the window now."""
    tallies = measured.passed.survey.tools.items()
    return find_garbage(
        measured.view,
        measured.window,
        measured.counter,
        measured.transcript.facts.tools,
        {name for name, tally in tallies if tally.count},
    )


def _about(measured: Measurement) -> About:
    """Return what identifies the session."""
    transcript, facts = measured.transcript, measured.transcript.facts
    return About(
        path=str(transcript.path),
        kind=transcript.kind,
        format=transcript.format,
        bytes=transcript.size,
        session_id=facts.session_id,
        project=facts.project,
        model=facts.model,
        version=facts.version,
        title=facts.title,
        first_at=facts.first_at,
        last_at=facts.last_at,
    )


def _window_now(measured: Measurement) -> WindowNow:
    """Return the window at the end of the session."""
    fill = measured.fill(measured.window.tokens)
    return WindowNow(
        number=measured.passed.window.number,
        **fill._asdict(),
        messages=len(measured.view),
        beside=measured.beside,
    )


def _rows(measured: Measurement, whole: dict[str, Tally], now: dict[str, Tally]) -> list[UsageRow]:
    """Return the largest tallies of the session, each with its share of the window now."""
    return [
        UsageRow(
            name=name,
            tokens=measured.scaled(tally.tokens),
            window_tokens=measured.scaled(now[name].tokens) if name in now else 0,
            count=tally.count,
            failed=tally.failed,
            largest=measured.scaled(tally.largest),
        )
        for name, tally in largest(whole, _MOST_ROWS)
    ]


def _turns(measured: Measurement) -> list[UserTurn]:
    """Return the turns in their order, in the provider's tokens."""
    return [
        msgspec.structs.replace(turn, tokens=measured.scaled(turn.tokens))
        for turn in measured.passed.survey.turns
    ]


def _fill(measured: Measurement) -> list[FillPoint]:
    """Return how full the window was at each request; of many requests, the fullest of each group."""
    numbered = list(enumerate(measured.passed.requests, 1))
    step = max(1, -(-len(numbered) // _MOST_POINTS))
    groups = [numbered[n : n + step] for n in range(0, len(numbered), step)]
    fullest = (max(group, key=lambda item: item[1].prompt) for group in groups)
    return [_point(measured, number, request) for number, request in fullest]


def _point(measured: Measurement, number: int, request: SessionRequest) -> FillPoint:
    fill = measured.fill(request.prompt)
    return FillPoint(
        request=number,
        line=request.line,
        window=request.window,
        tokens=request.prompt,
        percent=fill.percent,
        zone=fill.zone,
        at=request.at,
    )


def _zones(measured: Measurement) -> dict[str, int]:
    """Return how many requests were made in each zone."""
    found = dict.fromkeys(ZONES, 0)
    for request in measured.passed.requests:
        found[measured.fill(request.prompt).zone] += 1
    return found


def _cache(measured: Measurement) -> Cache:
    """Return what the provider's cache did, if the file reports it."""
    usages = measured.passed.usages
    if not usages:
        return Cache(is_reported=False)
    breaks = list(cache_breaks(measured.passed.requests, measured.sheet))
    read, prompt = sum(u.cache_read for u in usages), sum(u.prompt for u in usages)
    return Cache(
        is_reported=True,
        read=read,
        written=sum(usage.cache_write for usage in usages),
        uncached=sum(usage.uncached for usage in usages),
        hit_percent=round(100.0 * read / prompt, 1) if prompt else 0.0,
        lost=sum(each.lost for each in breaks),
        breaks=breaks[:_MOST_BREAKS],
    )


# -- Notes and advice


def _notes(measured: Measurement, found: Insight) -> list[str]:
    is_reported = bool(measured.passed.usages)
    stopped = found.bill.stopped
    notes = [
        (
            measured.scale is not None,
            f"Token counts are scaled to the provider's usage ({measured.scale or 1:.2f} x o200k).",
        ),
        (
            is_reported and not measured.transcript.facts.tools,
            "System prompt and tools are not in the file; their tokens are derived from the reported usage.",
        ),
        (
            not is_reported,
            "The file reports no usage: tokens are counted, and the cache is unknown.",
        ),
        (
            not measured.is_whole,
            "The bill covers the last window only: the file is large.",
        ),
        (
            measured.is_trimmed,
            "The conversation is longer than the window: the bill covers its last part only.",
        ),
        (
            any(len(view) > bill.MOST_REPLAYED for view in measured.windows),
            f"The bill covers the last {bill.MOST_REPLAYED:,} messages of each window.",
        ),
        (bool(stopped), f"The simulation ended early: {stopped}."),
    ]
    return [text for is_so, text in notes if is_so]


def _steps(found: Insight, context_limit: int | None) -> Iterator[Advice]:
    """Yield concrete steps, the one that helps most first, for the window that was asked for, if any."""
    path = shlex.quote(found.about.path)
    yield from _pruning(found, context_limit)
    yield from _outputs(found)
    yield from _reads(found.files)
    yield from _cache_breaks(found)
    yield from _schemas(found)
    if found.damaged:
        yield Advice(
            text=f"{found.damaged} damaged lines were skipped. See which:",
            command=f"ctxgc doctor {path}",
        )


def _previewed(preview: Callable[[], Proposal]) -> PrunePreview | None:
    """Return what pruning would do; None if the session cannot be pruned."""
    try:
        proposal = preview()
    except CtxgcError:
        return None
    return PrunePreview(
        tokens_before=proposal.tokens_before,
        tokens_after=proposal.tokens_after,
        percent_less=proposal.percent_less,
    )


def _pruning(found: Insight, context_limit: int | None) -> Iterator[Advice]:
    prune, window = found.prune, found.window
    if prune is None or prune.tokens_after >= prune.tokens_before:
        return
    if prune.percent_less < _MUCH_LESS and window.percent < _FULL:
        return
    own = "" if context_limit is None else f" --context-limit {context_limit}"
    yield Advice(
        text=f"The window is {window.percent:.0f}% full, and {found.garbage.percent:.0f}% of it is garbage."
        f" Pruning takes it from {prune.tokens_before:,} to {prune.tokens_after:,} tokens"
        f" ({prune.percent_less:.0f}% less). See what would leave, and why:",
        command=f"ctxgc prune {shlex.quote(found.about.path)}{own}",
    )


def _outputs(found: Insight) -> Iterator[Advice]:
    huge = [row for row in found.tools if row.largest >= _HUGE_OUTPUT]
    agents = {"claude_code": "claude-code", "codex": "codex"}
    if not huge:
        return
    worst = max(huge, key=lambda row: row.largest)
    agent = agents.get(found.about.kind)
    yield Advice(
        text=f"One output of {worst.name} took {worst.largest:,} tokens. ctxgc can stash such outputs"
        " as they arrive and keep the lines that matter:",
        command=f"ctxgc install {agent}" if agent else "ctxgc mcp",
    )


def _reads(files: list[UsageRow]) -> Iterator[Advice]:
    often = [row for row in files if row.count >= _MANY_READS]
    if often:
        worst = max(often, key=lambda row: row.tokens)
        yield Advice(
            text=f"{worst.name} was used {worst.count} times, {worst.tokens:,} tokens in total: ask only for"
            " the lines that are needed, or pin it once."
        )


def _schemas(found: Insight) -> Iterator[Advice]:
    garbage, window = found.garbage, found.window
    unused = next(each for each in garbage.reasons if each.reason == NEVER_CALLED)
    if unused.tokens >= _MANY_SCHEMAS:
        names = [each.name for each in garbage.largest if each.reason == NEVER_CALLED][:_NAMED]
        of = f" ({', '.join(names)} and others)" if names else ""
        yield Advice(
            text=f"Every request holds {unused.tokens:,} tokens of {unused.count} tools{of} that this"
            " session never called: turn off tools and MCP servers that the project does not need."
        )
    elif window.beside > _MUCH_OUTSIDE * window.limit:
        yield Advice(
            text=f"Every request holds {window.beside:,} tokens that are not in the transcript: turn off"
            " tools and MCP servers that the project does not need."
        )


def _cache_breaks(found: Insight) -> Iterator[Advice]:
    breaks = found.cache.breaks
    if not breaks:
        return
    why, times = Counter(each.why for each in breaks).most_common(1)[0]
    says = {
        "idle too long": "if pauses are usual, a longer cache lifetime pays",
        "the prefix changed": "something rewrites the beginning of the request",
        "model changed": "changing models in a session rewrites the whole window",
        "compaction": "collecting in time avoids rewriting the whole window",
    }
    yield Advice(
        text=f"The prompt cache broke {_times(len(breaks))} and {found.cache.lost:,} tokens were"
        f" written again. The usual cause ({_times(times)}): {why}; {says[why]}."
    )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
