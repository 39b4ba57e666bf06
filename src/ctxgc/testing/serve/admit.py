"""The checks before a request is read as a conversation: key, size, JSON, fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ctxgc.testing.breach import Breach, Format
from ctxgc.testing.serve.fields import check_fields
from ctxgc.testing.serve.refuse import RefusedError
from ctxgc.testing.serve.settings import Settings
from ctxgc.testing.signatures import BINDING_BETA

SECRET_HEADERS = frozenset({"authorization", "x-api-key", "cookie", "proxy-authorization"})


def check_key(form: Format, headers: Mapping[str, str]) -> None:
    """Refuse a request without any key."""
    if headers.get("authorization", "").removeprefix("Bearer").strip():
        return
    if form == "anthropic":
        if not headers.get("x-api-key"):
            raise RefusedError(Breach("key", "x-api-key header is required", status=401))
        return
    text = (
        "You didn't provide an API key. You need to provide your API key in an Authorization "
        "header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
    )
    raise RefusedError(Breach("key", text, status=401))


def read_body(form: Format, raw: bytes, settings: Settings) -> dict[str, Any]:
    """Return the request body as an object, or refuse what is too large or no object."""
    if len(raw) > settings.max_body_bytes:
        raise RefusedError(Breach("too_large", "Request exceeds the maximum size", status=413))
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        text = "We could not parse the JSON body of your request."
        if form == "anthropic":
            text = "The request body is not valid JSON"
        raise RefusedError(Breach("json", text))
    return body


def check_request(
    form: Format, body: dict[str, Any], headers: Mapping[str, str], settings: Settings, path: str
) -> None:
    """Refuse unknown fields, wrong types and what the headers do not allow."""
    counting = path.endswith("/count_tokens")
    breaches = check_fields(
        body,
        form,
        extra=settings.extra_fields,
        optional=("max_tokens",) if counting else (),
    )
    if form == "anthropic":
        breaches += _anthropic_headers(body, headers)
    if form == "responses" and not any(body.get(name) for name in _RESPONSES_INPUTS):
        text = (
            'One of "input" or "previous_response_id" or "prompt" or "conversation" must be '
            "provided."
        )
        breaches.append(Breach("empty_history", text, "input", "missing_required_parameter"))
    if breaches:
        raise RefusedError(breaches[0], tuple(breaches))


_RESPONSES_INPUTS = ("input", "previous_response_id", "prompt", "conversation")


def _anthropic_headers(body: dict[str, Any], headers: Mapping[str, str]) -> list[Breach]:
    breaches = []
    if "anthropic-version" not in headers:
        breaches.append(Breach("version", "anthropic-version: header is required"))
    thinking = body.get("thinking")
    bound = isinstance(thinking, Mapping) and thinking.get("block_binding") is not None
    if bound and BINDING_BETA not in headers.get("anthropic-beta", ""):
        text = "thinking.block_binding: Extra inputs are not permitted"
        breaches.append(Breach("unknown_field", text, "thinking.block_binding"))
    return breaches
