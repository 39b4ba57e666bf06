"""Which top-level fields a request may have, and of what type: garbage is refused by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ctxgc.testing.breach import Breach, Format, Json
from ctxgc.testing.openai_words import missing_field, wrong_type

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


def check_fields(
    body: Json, form: Format, *, extra: Collection[str] = (), optional: Collection[str] = ()
) -> list[Breach]:
    """Return what is wrong with the top-level fields of a request.

    `extra` names fields that pass unchecked, `optional` required ones that may be absent.
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
