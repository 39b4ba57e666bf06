"""Dialects: what a path asks of which provider, and how that provider says that something went wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

import msgspec

from ctxgc.proxy.options import Provider
from ctxgc.session import Format

Kind = Literal["history", "compaction", "other"]
"""A request with a history to collect in, one that compacts, and everything that is passed on."""

_HISTORIES: Mapping[str, Format] = {
    "/v1/messages": "anthropic",
    "/v1/chat/completions": "openai",
    "/v1/responses": "responses",
}
_COMPACTIONS: Mapping[str, Format] = {"/v1/responses/compact": "responses"}
_OF_ANTHROPIC = ("/v1/messages", "/v1/complete", "/api/")
_SIGNS = ("anthropic-version", "anthropic-beta", "x-api-key")
_TYPES: Mapping[int, str] = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
    413: "request_too_large", 421: "invalid_request_error", 429: "rate_limit_error",
}  # fmt: skip


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request goes and what it is."""

    provider: Provider
    kind: Kind = "other"
    format: Format | None = None


def route_of(method: str, path: str, headers: Mapping[str, str]) -> Route:
    """Return the route of a request; what no path tells, the headers of Anthropic's clients do."""
    plain = path.rstrip("/")
    # OpenAI's SDK adds no /v1 to a base URL, so one that was given without it still works.
    known = plain if plain.startswith("/v1") else f"/v1{plain}"
    for kind, paths in (("history", _HISTORIES), ("compaction", _COMPACTIONS)):
        if method == "POST" and known in paths:
            form = paths[known]
            provider: Provider = "anthropic" if form == "anthropic" else "openai"
            return Route(provider=provider, kind=kind, format=form)  # type: ignore[arg-type]
    is_anthropic = known.startswith(_OF_ANTHROPIC) or path.startswith("/api/")
    if is_anthropic or any(sign in headers for sign in _SIGNS):
        return Route(provider="anthropic")
    return Route(provider="openai")


def error_body(provider: Provider, status: int, text: str) -> bytes:
    """Return an error as a provider writes it."""
    kind = _TYPES.get(status, "api_error")
    if provider == "anthropic":
        said = {"type": "error", "error": {"type": kind, "message": text}}
    else:
        kind = "server_error" if status >= 500 else kind
        said = {"error": {"message": text, "type": kind, "param": None, "code": None}}
    return json.dumps(said).encode()


def spent_refusal(provider: Provider, text: str) -> tuple[int, bytes]:
    """Return status and body by which a provider says that the money is spent."""
    if provider == "anthropic":
        said = {"type": "error", "error": {"type": "billing_error", "message": text}}
        return 402, json.dumps(said).encode()
    kind = "insufficient_quota"
    return 429, json.dumps(
        {"error": {"message": text, "type": kind, "param": None, "code": kind}}
    ).encode()
