"""Refusals: the checks of key, size, JSON, fields and length, and errors in each provider's shape."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxgc.testing.breach import Breach, Format, Json
from ctxgc.testing.checker_openai import missing_field, wrong_type
from ctxgc.testing.serve.settings import Fault, Settings
from ctxgc.testing.signatures import BINDING_BETA

# -- Top-level fields and their types


_TEXT, _LIST, _OBJECT = "a string", "an array of objects", "an object"
_WHOLE, _NUMBER, _YES_NO, _ANY = "an integer", "a decimal", "a boolean", "any"
_TEXT_OR_LIST = "a string or an array of objects"

_OPENAI_SHARED = {
    "model": _TEXT, "tools": _LIST, "stream": _YES_NO, "stream_options": _OBJECT,
    "temperature": _NUMBER, "top_p": _NUMBER, "top_logprobs": _WHOLE, "user": _TEXT,
    "metadata": _OBJECT, "store": _YES_NO, "service_tier": _TEXT, "safety_identifier": _TEXT,
    "parallel_tool_calls": _YES_NO, "tool_choice": _ANY, "moderation": _OBJECT,
    "prompt_cache_key": _TEXT, "prompt_cache_options": _OBJECT, "prompt_cache_retention": _TEXT,
}  # fmt: skip
_OPENAI = _OPENAI_SHARED | {
    "messages": _LIST, "audio": _OBJECT, "frequency_penalty": _NUMBER, "presence_penalty": _NUMBER,
    "function_call": _ANY, "functions": _LIST, "logit_bias": _OBJECT, "logprobs": _YES_NO,
    "max_completion_tokens": _WHOLE, "max_tokens": _WHOLE, "modalities": _ANY, "n": _WHOLE,
    "prediction": _OBJECT, "reasoning_effort": _TEXT, "response_format": _OBJECT, "seed": _WHOLE,
    "stop": _ANY, "verbosity": _TEXT, "web_search_options": _OBJECT,
}  # fmt: skip
_RESPONSES = _OPENAI_SHARED | {
    "input": _TEXT_OR_LIST, "instructions": _TEXT, "max_output_tokens": _WHOLE,
    "max_tool_calls": _WHOLE, "background": _YES_NO, "context_management": _LIST,
    "conversation": _ANY, "include": _ANY, "previous_response_id": _TEXT, "prompt": _OBJECT,
    "reasoning": _OBJECT, "text": _OBJECT, "truncation": _TEXT, "image": _OBJECT,
    "access_programs": _OBJECT,
}  # fmt: skip
_ANTHROPIC = {
    "model": _TEXT, "messages": _LIST, "max_tokens": _WHOLE, "system": _TEXT_OR_LIST,
    "tools": _LIST, "tool_choice": _OBJECT, "thinking": _OBJECT, "stream": _YES_NO,
    "temperature": _NUMBER, "top_p": _NUMBER, "top_k": _WHOLE, "stop_sequences": _ANY,
    "metadata": _OBJECT, "service_tier": _TEXT, "container": _ANY, "cache_control": _OBJECT,
    "output_config": _OBJECT, "context_management": _OBJECT, "mcp_servers": _LIST,
    "diagnostics": _OBJECT, "inference_geo": _TEXT, "speed": _TEXT, "output_format": _OBJECT,
    "user_profile_id": _TEXT, "workspace_id": _TEXT, "betas": _ANY, "fallbacks": _ANY,
    "fallback_credit_token": _ANY, "compaction": _OBJECT, "thread": _OBJECT,
}  # fmt: skip
_KNOWN: dict[Format, dict[str, str]] = {
    "openai": _OPENAI,
    "responses": _RESPONSES,
    "anthropic": _ANTHROPIC,
}
_REQUIRED: dict[Format, tuple[str, ...]] = {
    "openai": ("model", "messages"),
    "responses": ("model",),
    "anthropic": ("model", "messages", "max_tokens"),
}
_TYPES: dict[str, tuple[type, ...]] = {
    _TEXT: (str,),
    _LIST: (list,),
    _OBJECT: (Mapping,),
    _WHOLE: (int,),
    _NUMBER: (int, float),
    _YES_NO: (bool,),
    _TEXT_OR_LIST: (str, list),
}
_ANTHROPIC_WORDS = {
    _TEXT: "valid string",
    _LIST: "valid list",
    _OBJECT: "valid dictionary",
    _WHOLE: "valid integer",
    _NUMBER: "valid number",
    _YES_NO: "valid boolean",
    _TEXT_OR_LIST: "valid list",
}


def _check_fields(
    body: Json, form: Format, *, extra: Collection[str] = (), optional: Collection[str] = ()
) -> list[Breach]:
    """Return what is wrong with the top-level fields of a request.

    `extra` are fields that are not checked, `optional` are required ones that may be missing.
    """
    required = [name for name in _REQUIRED[form] if name not in optional]
    missing = [_missing(form, name) for name in required if body.get(name) is None]
    return missing + [
        breach
        for name, value in body.items()
        if name not in extra
        for breach in _field(form, name, value)
    ]


def _field(form: Format, name: str, value: Any) -> Iterator[Breach]:
    wanted = _KNOWN[form].get(name)
    if wanted is None:
        yield _unknown(form, name)
    elif value is not None and wanted != _ANY and not _fits(value, wanted):
        yield _mistyped(form, name, wanted, value)


def _fits(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == _YES_NO
    return isinstance(value, _TYPES[wanted])


def _missing(form: Format, name: str) -> Breach:
    if form == "anthropic":
        return Breach("shape", f"{name}: Field required", name)
    return missing_field(name)


def _unknown(form: Format, name: str) -> Breach:
    if form == "anthropic":
        return Breach("unknown_field", f"{name}: Extra inputs are not permitted", name)
    text = f"Unknown parameter: '{name}'."
    return Breach("unknown_field", text, name, "unknown_parameter")


def _mistyped(form: Format, name: str, wanted: str, value: Any) -> Breach:
    if form == "anthropic":
        text = f"{name}: Input should be a {_ANTHROPIC_WORDS[wanted]}"
        return Breach("shape", text, name)
    return wrong_type(name, wanted, value)


# -- Errors in the shape of each provider


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
    """Raised inside the server to answer with an error."""

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
    """Return the refusal of a planned fault."""
    status = fault.status or 500
    text = fault.message or _TEXTS.get(status, "The request was refused.")
    headers = {}
    if fault.retry_after is not None:
        headers["retry-after"] = f"{fault.retry_after:g}"
    return RefusedError(Breach("fault", text, status=status), headers=headers)


def too_long(form: Format, tokens: int, output: int, limit: int) -> Breach | None:
    """Return the refusal of a prompt that does not fit the context window, or None if it fits."""
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


SECRET_HEADERS = frozenset({"authorization", "x-api-key", "cookie", "proxy-authorization"})


def check_key(form: Format, headers: Mapping[str, str]) -> None:
    """Refuse a request without an API key."""
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
    """Return the request body; refuse one that is too large or not an object."""
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
    breaches = _check_fields(
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
