"""The provider's cache: for how long a request asks it to keep what is sent, and why it had not kept it.

A miss that a collection caused is told apart from those of the client and of the provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from ctxgc.proxy.request_body import RequestBody, loads, mark_of

MissCause = Literal[
    "collection", "lapsed", "model", "system", "tools", "rewind", "messages", "other", "unknown"
]

MINUTE, HOUR = 60.0, 3_600.0
_UNITS: Mapping[str, float] = {"m": MINUTE, "h": HOUR}
_SHORT = 5 * MINUTE
_LEAST_TOKENS, _LEAST_SHARE = 2_048, 0.10
"""What is missed below this is a provider's granularity, unless a collection caused it."""

_CAUSES: Mapping[str, MissCause] = {
    "model_changed": "model", "system_changed": "system", "tools_changed": "tools",
    "messages_changed": "messages", "input_changed": "messages", "context_compacted": "messages",
}  # fmt: skip


def cache_seconds(envelope: RequestBody) -> float | None:
    """Return for how long a request asks its provider to cache it; None if it does not say.

    With Anthropic the newest mark decides, which is the one that the history is kept by.

    Raises:
        UnreadableError: what it says cannot be read.
    """
    if envelope.form == "anthropic":
        mark = _newest_mark(envelope)
        return None if mark is None else _seconds(mark.get("ttl"), _SHORT)
    options = envelope.field("prompt_cache_options")
    said = options.get("ttl") if isinstance(options, dict) else None
    return _seconds(said or envelope.field("prompt_cache_retention"), None)


def _newest_mark(envelope: RequestBody) -> Mapping[str, Any] | None:
    for raw in reversed(envelope.messages):
        mark = mark_of(loads(raw)) if b'"cache_control"' in raw else None
        if isinstance(mark, dict):
            return mark
    whole = envelope.field("cache_control")
    if isinstance(whole, dict):
        return whole
    for name in ("system", "tools"):
        blocks = envelope.field(name) if b'"cache_control"' in (envelope.raw(name) or b"") else ()
        mark = mark_of({"content": blocks})
        if isinstance(mark, dict):
            return mark
    return None


def _seconds(said: object, usual: float | None) -> float | None:
    """Return a life such as `5m`, `1h` or `24h`; the usual one for anything else."""
    text = said if isinstance(said, str) else ""
    number, unit = text[:-1], text[-1:]
    if not number.isdecimal() or unit not in _UNITS:
        return usual
    return int(number) * _UNITS[unit]


class CacheMiss(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that the last request had sent and the provider's cache did not give back."""

    cause: MissCause
    tokens: int
    by_ctxgc: bool


class SentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a request before its answer: what may have cost it the cache."""

    sent_at: datetime
    model: str | None = None
    changed: frozenset[str] = frozenset()
    """Which of `system`, `tools` and `history` are not what the request before it had."""
    collected: bool = False


class CacheWatch:
    """Compares what the cache gave back with what the last request of a line had sent."""

    def __init__(self) -> None:
        self._last: tuple[SentRequest, int] | None = None

    def look(
        self,
        request: SentRequest,
        prompt: int,
        read: int,
        *,
        life: float | None,
        diagnostics: Mapping[str, Any],
    ) -> CacheMiss | None:
        """Return what was missed; `prompt` and `read` are the provider's counts, `life` is in seconds."""
        last, self._last = self._last, (request, prompt)
        if last is None or not (read or request.collected or diagnostics or life):
            return None
        before, sent = last
        missed = min(sent, prompt) - read
        floor = 0 if request.collected else max(_LEAST_TOKENS, int(_LEAST_SHARE * sent))
        if missed <= floor:
            return None
        cause = _cause(before, request, life, diagnostics)
        is_ours = request.collected and cause in ("collection", "messages")
        return CacheMiss(cause="collection" if is_ours else cause, tokens=missed, by_ctxgc=is_ours)


def _cause(
    before: SentRequest,
    request: SentRequest,
    life: float | None,
    diagnostics: Mapping[str, Any],
) -> MissCause:
    """Return why: what the provider says, else what is known of both requests."""
    reason = diagnostics.get("cache_miss_reason") or diagnostics.get("reason")
    reason = reason.get("type") if isinstance(reason, dict) else reason
    if isinstance(reason, str) and reason != "unavailable":
        return _CAUSES.get(reason, "other")
    if life is not None and (request.sent_at - before.sent_at).total_seconds() > life:
        return "lapsed"
    if request.model != before.model:
        return "model"
    for name, cause in _CHANGES.items():
        if name in request.changed:
            return cause
    return "collection" if request.collected else "unknown"


_CHANGES: Mapping[str, MissCause] = {"tools": "tools", "system": "system", "history": "rewind"}
