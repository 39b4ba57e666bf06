"""Refusals in the shape of each provider: status, headers and body."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ctxgc.testing.breach import Breach, Format
from ctxgc.testing.serve.faults import Fault

_OPENAI_TYPES = {429: "requests", 500: "server_error", 503: "server_error", 529: "server_error"}
_OPENAI_CODES = {429: "rate_limit_exceeded"}
_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
_TEXTS = {
    429: "Rate limit reached. Please try again later.",
    500: "The server had an error while processing your request. Sorry about that!",
    503: "The engine is currently overloaded, please try again later.",
    529: "Overloaded",
}


@dataclass
class RefusedError(Exception):
    """Raised inside the server to answer with an error instead of a turn."""

    breach: Breach
    breaches: tuple[Breach, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)


def error_body(form: Format, breach: Breach) -> dict[str, Any]:
    """Return the JSON body of a refusal as the provider of this format writes it."""
    if form == "anthropic":
        kind = _ANTHROPIC_TYPES.get(breach.status, "api_error")
        error = {"type": kind, "message": breach.message}
        return {"type": "error", "error": error, "request_id": "req_ctxgc"}
    return {
        "error": {
            "message": breach.message,
            "type": _OPENAI_TYPES.get(breach.status, "invalid_request_error"),
            "param": breach.param,
            "code": breach.code or _OPENAI_CODES.get(breach.status),
        }
    }


def from_fault(fault: Fault) -> RefusedError:
    """Return the refusal that a fault on order stands for."""
    status = fault.status or 500
    text = fault.message or _TEXTS.get(status, "The request was refused.")
    headers = {}
    if fault.retry_after is not None:
        headers["retry-after"] = f"{fault.retry_after:g}"
    return RefusedError(Breach("fault", text, status=status), headers=headers)


def too_long(form: Format, tokens: int, output: int, limit: int) -> Breach | None:
    """Return the refusal of a prompt that does not fit the context window, with its numbers."""
    if form == "anthropic":
        return _anthropic_too_long(tokens, output, limit)
    if form == "responses":
        text = (
            "Your input exceeds the context window of this model. Please adjust your input and "
            "try again."
        )
        return _overflow(text, "input") if tokens > limit else None
    if tokens > limit:
        text = (
            f"This model's maximum context length is {limit} tokens. However, your messages "
            f"resulted in {tokens} tokens. Please reduce the length of the messages."
        )
        return _overflow(text, "messages")
    if tokens + output > limit:
        text = (
            f"This model's maximum context length is {limit} tokens. However, you requested "
            f"{tokens + output} tokens ({tokens} in the messages, {output} in the completion). "
            "Please reduce the length of the messages or completion."
        )
        return _overflow(text, "messages")
    return None


def _overflow(text: str, param: str) -> Breach:
    return Breach("too_long", text, param, "context_length_exceeded")


def _anthropic_too_long(tokens: int, output: int, limit: int) -> Breach | None:
    if tokens > limit:
        return Breach("too_long", f"prompt is too long: {tokens} tokens > {limit} maximum")
    if tokens + output > limit:
        text = (
            f"input length and `max_tokens` exceed context limit: {tokens} + {output} > {limit}, "
            "decrease input length or `max_tokens` and try again"
        )
        return Breach("too_long", text)
    return None
