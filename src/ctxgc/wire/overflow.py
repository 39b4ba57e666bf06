"""Context overflow: whether a provider's refusal means that the request was too long, and by how much."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

_STATUSES = (400, 413, 422)
_TOKENS = (
    "context_length_exceeded",
    "maximum context length",
    "prompt is too long",
    "exceeds the context window",
    "exceed the context window",
    "exceeds the available context size",
    "context window exceeds limit",
    "please reduce the length of",
    "exceed context limit",
    "exceed context window",
    "model_context_window_exceeded",
)
_BYTES = ("request_too_large", "request exceeds the maximum size", "request too large")
_MAX_TEXT = 100_000

_NUMBER = r"(\d[\d,_]{0,20})"
_USED_AND_LIMIT = tuple(
    re.compile(pattern)
    for pattern in (
        rf"too long: {_NUMBER} tokens > {_NUMBER}",
        rf"{_NUMBER} \+ {_NUMBER} > {_NUMBER}",
        rf"\({_NUMBER} tokens\) exceeds the available context size \({_NUMBER} tokens\)",
    )
)
_LIMIT = re.compile(
    rf"(?:maximum context length is|context window of|context size \(|context size is)\s*{_NUMBER}"
)
_USED = re.compile(
    r"(?:resulted in|you requested(?: about)?|requested tokens|request has|contains(?: at least)?)"
    rf"\s+\(?{_NUMBER}"
)


class Overflow(msgspec.Struct, frozen=True, kw_only=True):
    """A request that did not fit: the limit and the size as far as the provider named them."""

    kind: Literal["tokens", "bytes"]
    limit: int | None = None
    used: int | None = None


def parse_overflow(
    status: int | None, body: Mapping[str, Any] | str | bytes | None
) -> Overflow | None:
    """Return what a provider's answer says about an overflow, or None if it is not about one.

    Takes the HTTP status if known and the body as text or as an object: an error, or an Anthropic
    message that stopped at the end of its window.
    """
    text = _text(body).lower()
    if _stopped_at_window(text):
        return Overflow(kind="tokens")
    if status is not None and status not in _STATUSES:
        return None
    if any(phrase in text for phrase in _TOKENS):
        return _tokens(text)
    if status == 413 or any(phrase in text for phrase in _BYTES):
        return Overflow(kind="bytes", limit=_megabytes(text))
    return None


def _text(body: Mapping[str, Any] | str | bytes | None) -> str:
    if isinstance(body, bytes):
        return body[:_MAX_TEXT].decode("utf-8", "replace")
    if isinstance(body, Mapping):
        return json.dumps(body, default=str, ensure_ascii=False)[:_MAX_TEXT]
    return (body or "")[:_MAX_TEXT]


def _stopped_at_window(text: str) -> bool:
    return re.search(r'"stop_reason"\s*:\s*"model_context_window_exceeded"', text) is not None


def _tokens(text: str) -> Overflow:
    for pattern in _USED_AND_LIMIT:
        if match := pattern.search(text):
            *used, limit = (_number(group) for group in match.groups())
            return Overflow(kind="tokens", limit=limit, used=sum(used))
    limit_match, used_match = _LIMIT.search(text), _USED.search(text)
    return Overflow(
        kind="tokens",
        limit=_number(limit_match[1]) if limit_match else None,
        used=_number(used_match[1]) if used_match else None,
    )


def _megabytes(text: str) -> int:
    match = re.search(r"(\d{1,4}) ?mb", text)
    return int(match[1]) * 1024 * 1024 if match else 32 * 1024 * 1024


def _number(text: str) -> int:
    return int(text.replace(",", "").replace("_", ""))
