from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.wire import Overflow, parse_overflow

MEGABYTE = 1024 * 1024


def _error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


@pytest.mark.parametrize(
    ("text", "limit", "used"),
    [
        (
            "maximum context length is 128000 tokens. However, your messages resulted in 130,123 tokens",
            128_000,
            130_123,
        ),
        (
            "maximum context length is 8192 tokens, however you requested 8203 tokens (7691 in ...",
            8_192,
            8_203,
        ),
        ("prompt is too long: 208310 tokens > 200000 maximum", 200_000, 208_310),
        (
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease",
            200_000,
            242_959,
        ),
        (
            "the request (9000 tokens) exceeds the available context size (8192 tokens), try",
            8_192,
            9_000,
        ),
        ("Requested tokens (600) exceed context window of 512", 512, 600),
        ("Your input exceeds the context window of this model.", None, None),
        ("invalid params, context window exceeds limit (2013)", None, None),
        ("Please reduce the length of either one", None, None),
    ],
)
def test_each_providers_refusal_gives_its_numbers(
    text: str, limit: int | None, used: int | None
) -> None:
    expected = Overflow(kind="tokens", limit=limit, used=used)
    assert parse_overflow(400, text) == expected
    assert parse_overflow(None, _error(text)) == expected
    assert parse_overflow(422, json.dumps(_error(text)).encode()) == expected


def test_the_code_alone_is_enough() -> None:
    body = _error("too much", code="context_length_exceeded")
    assert parse_overflow(400, body) == Overflow(kind="tokens")


@pytest.mark.parametrize("status", [200, None])
def test_an_answer_that_stopped_at_the_window_is_an_overflow(status: int | None) -> None:
    body = {"type": "message", "stop_reason": "model_context_window_exceeded", "content": []}
    assert parse_overflow(status, body) == Overflow(kind="tokens")


def test_a_body_too_large_counts_in_bytes() -> None:
    body = {
        "type": "error",
        "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"},
    }
    assert parse_overflow(413, body) == Overflow(kind="bytes", limit=32 * MEGABYTE)
    assert parse_overflow(413, "Request too large (max 20MB)") == Overflow(
        kind="bytes", limit=20 * MEGABYTE
    )
    assert parse_overflow(413, None) == Overflow(kind="bytes", limit=32 * MEGABYTE)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {"content": "the prompt is too long, says the maximum context length page"}),
        (429, "prompt is too long: 1 tokens > 0 maximum"),
        (400, "messages: first message must use the user role"),
        (500, ""),
        (None, None),
    ],
)
def test_other_answers_are_none(status: int | None, body: Any) -> None:
    assert parse_overflow(status, body) is None


@given(st.none() | st.integers(100, 599), st.text() | st.binary())
def test_no_body_makes_it_fail(status: int | None, body: str | bytes) -> None:
    found = parse_overflow(status, body)
    assert found is None or found.kind in ("tokens", "bytes")
