"""The parts of an insight that come from one reading: rows, the window, fill, zones, the cache."""

from __future__ import annotations

import msgspec

from ctxgc.insight.measured import Measured
from ctxgc.insight.report import About, Cache, Point, Row, WindowNow
from ctxgc.insight.requests import Request, cache_breaks
from ctxgc.insight.survey import Tally, Turn, largest

MOST_ROWS = 40
MOST_POINTS = 400
MOST_BREAKS = 200
ZONES = ("safe", "warning", "danger", "critical")


def about(measured: Measured) -> About:
    """Return which session it is."""
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


def window_now(measured: Measured) -> WindowNow:
    """Return the window at the end of the session."""
    tokens = measured.beside + measured.scaled(measured.now.total)
    return WindowNow(
        number=measured.passed.window.number,
        limit=measured.limit,
        tokens=tokens,
        percent=measured.percent(tokens),
        zone=measured.zone(tokens),
        messages=len(measured.windows[-1]),
        beside=measured.beside,
    )


def rows(measured: Measured, whole: dict[str, Tally], now: dict[str, Tally]) -> list[Row]:
    """Return the largest tallies of the session, each with its share of the window now."""
    return [
        Row(
            name=name,
            tokens=measured.scaled(tally.tokens),
            window_tokens=measured.scaled(now[name].tokens) if name in now else 0,
            count=tally.count,
            failed=tally.failed,
            largest=measured.scaled(tally.largest),
        )
        for name, tally in largest(whole, MOST_ROWS)
    ]


def turns(measured: Measured) -> list[Turn]:
    """Return the turns in their order, in the provider's tokens."""
    return [
        msgspec.structs.replace(turn, tokens=measured.scaled(turn.tokens))
        for turn in measured.passed.survey.turns
    ]


def fill(measured: Measured) -> list[Point]:
    """Return how full the window was at each request; of many, the fullest of each share."""
    numbered = list(enumerate(measured.passed.requests, 1))
    step = max(1, -(-len(numbered) // MOST_POINTS))
    shares = [numbered[n : n + step] for n in range(0, len(numbered), step)]
    fullest = (max(share, key=lambda item: item[1].prompt) for share in shares)
    return [_point(measured, number, request) for number, request in fullest]


def _point(measured: Measured, number: int, request: Request) -> Point:
    return Point(
        request=number,
        line=request.line,
        window=request.window,
        tokens=request.prompt,
        percent=measured.percent(request.prompt),
        zone=measured.zone(request.prompt),
        at=request.at,
    )


def zones(measured: Measured) -> dict[str, int]:
    """Return how many requests were made in each zone."""
    found = dict.fromkeys(ZONES, 0)
    for request in measured.passed.requests:
        found[measured.zone(request.prompt)] += 1
    return found


def cache(measured: Measured) -> Cache:
    """Return what the provider's cache did, where the file reports it."""
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
        breaks=breaks[:MOST_BREAKS],
    )
