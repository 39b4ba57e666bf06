"""Requests: how full the window was at each, what was paid, and where the prompt cache broke."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

import msgspec

from ctxgc.economics import PriceSheet
from ctxgc.tokens import growth
from ctxgc.tokens.growth import Reported
from ctxgc.wire.transcripts import Usage

_LEAST_LOSS = 2_048
_LEAST_SHARE = 0.1
_SCALES = (0.6, 2.5)


class Request(msgspec.Struct):
    """One request of the main conversation; `counted` is what the transcript showed of its window.

    Where the provider's usage is not in the file, `prompt` is estimated and nothing is known of caches.
    """

    line: int
    window: int
    counted: int
    prompt: int
    at: datetime | None = None
    model: str | None = None
    reply_id: str | None = None
    usage: Usage | None = None


class CacheBreak(msgspec.Struct, frozen=True, kw_only=True):
    """A request that had to write again what the one before had cached."""

    request: int
    line: int
    lost: int
    why: str
    at: datetime | None = None


def scale_of(requests: list[Request]) -> float | None:
    """Return how many tokens the provider counts for one of ours; None when that cannot be told."""
    told = [
        Reported(request.counted, request.prompt, request.usage.beside, request.window)
        for request in requests
        if request.usage is not None
    ]
    scale = growth.scale_of(told)
    return None if scale is None else min(max(scale, _SCALES[0]), _SCALES[1])


def cache_breaks(requests: list[Request], sheet: PriceSheet) -> Iterator[CacheBreak]:
    """Yield the requests that read much less from the cache than the one before left there."""
    for number, (before, now) in enumerate(pairwise(requests), 2):
        if before.usage is None or now.usage is None:
            continue
        left = before.usage.cache_read + before.usage.cache_write
        lost = left - now.usage.cache_read
        if lost > max(_LEAST_LOSS, _LEAST_SHARE * left):
            why = _why(before, now, sheet)
            yield CacheBreak(request=number, line=now.line, lost=lost, why=why, at=now.at)


def _why(before: Request, now: Request, sheet: PriceSheet) -> str:
    if before.window != now.window:
        return "compaction"
    if before.model != now.model:
        return "model changed"
    if before.at is not None and now.at is not None and sheet.ttl_seconds is not None:
        idle = (now.at - before.at).total_seconds()
        if idle > sheet.ttl_seconds:
            return "idle too long"
    return "the prefix changed"


def paid(usages: list[Usage], sheet: PriceSheet) -> float:
    """Return what requests cost, in units of one plain input token, output included."""
    return sum(
        usage.uncached
        + sheet.read * usage.cache_read
        + sheet.write * usage.cache_write
        + sheet.output * usage.output
        for usage in usages
    )
