"""The rules of OpenAI's chat completions for a history, read from its refusals.

Written from the provider's side and on plain data: it shares nothing with the code that plans
and renders views, so that it can judge them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxgc.testing.breach import Body, Breach, Json, history_of, is_json

# -- OpenAI's messages for missing and wrong fields


MIN_ONE = "Expected an array with minimum length 1, but got an empty array instead."


def missing_field(param: str, index: int | None = None) -> Breach:
    """Return the refusal of a request that lacks a field."""
    text = f"Missing required parameter: '{param}'."
    return Breach("shape", text, param, "missing_required_parameter", index=index)


def wrong_type(param: str, wanted: str, got: Any, index: int | None = None) -> Breach:
    """Return the refusal of a field with a value of another type."""
    text = f"Invalid type for '{param}': expected {wanted}, but got {_json_type(got)} instead."
    return Breach("shape", text, param, "invalid_type", index=index)


def wrong_value(
    rule: str, param: str, got: Any, allowed: Sequence[str], index: int | None = None
) -> Breach:
    """Return the refusal of a field whose value is not one of the allowed ones."""
    text = f"Invalid value: '{got}'. Supported values are: {quoted(allowed)}."
    return Breach(rule, text, param, "invalid_value", index=index)


def _json_type(value: Any) -> str:
    """Return OpenAI's name for the type of a JSON value, with its article."""
    names = {bool: "a boolean", int: "an integer", float: "a decimal", str: "a string"}
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    return names.get(type(value), "an array")


def quoted(names: Sequence[str]) -> str:
    """Return the names the way OpenAI lists them: `'a', 'b', and 'c'`."""
    marked = [f"'{name}'" for name in names]
    if len(marked) < 3:
        return " and ".join(marked)
    return ", ".join(marked[:-1]) + f", and {marked[-1]}"


ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_PARTS: dict[str, tuple[str, ...]] = {
    "system": ("text",),
    "developer": ("text",),
    "tool": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
}


def check(body: Body, *, complete: bool = True) -> list[Breach]:
    """Return what chat completions would refuse in a body or a list of messages, in order.

    With `complete=False` the calls of the last assistant message may still wait for results.
    """
    messages = history_of(body, "messages")
    if not messages:
        text = f"Invalid 'messages': empty array. {MIN_ONE}"
        return [Breach("empty_history", text, "messages", "empty_array")]
    shape = [breach for index, item in enumerate(messages) for breach in _message(index, item)]
    return shape + list(_pairing(messages, complete))


def _message(index: int, message: Any) -> Iterator[Breach]:
    if not isinstance(message, Mapping):
        yield wrong_type(f"messages[{index}]", "an object", message, index)
        return
    role = message.get("role")
    if role not in ROLES:
        yield wrong_value("role", f"messages[{index}].role", role, ROLES, index)
        return
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield missing_field(f"messages[{index}].tool_call_id", index)
    yield from _content(index, role, message)
    if role == "assistant" and message.get("tool_calls") is not None:
        yield from _calls(index, message["tool_calls"])


def _content(index: int, role: str, message: Json) -> Iterator[Breach]:
    content = message.get("content")
    where = f"messages[{index}].content"
    if content is None:
        excused = ("tool_calls", "function_call", "refusal", "audio")
        if role == "function" and "content" in message:
            return
        if role != "assistant" or not any(message.get(field) for field in excused):
            text = "Invalid value for 'content': expected a string, got null."
            yield Breach("content", text, f"messages.[{index}].content", index=index)
    elif isinstance(content, Sequence) and not isinstance(content, str):
        if not content:
            text = f"Invalid '{where}': empty array. {MIN_ONE}"
            yield Breach("content", text, where, "empty_array", index=index)
        for place, part in enumerate(content):
            yield from _part(index, f"{where}[{place}]", role, part)
    elif not isinstance(content, str):
        yield wrong_type(where, "a string or an array of objects", content, index)


def _part(index: int, where: str, role: str, part: Any) -> Iterator[Breach]:
    if not isinstance(part, Mapping):
        yield wrong_type(where, "an object", part, index)
        return
    allowed = _PARTS.get(role, ("text",))
    if part.get("type") not in allowed:
        yield wrong_value("content", where, part.get("type"), allowed, index)
    elif part["type"] == "text" and not isinstance(part.get("text"), str):
        yield missing_field(f"{where}.text", index)


def _calls(index: int, calls: Any) -> Iterator[Breach]:
    where = f"messages[{index}].tool_calls"
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        yield wrong_type(where, "an array of objects", calls, index)
        return
    if not calls:
        text = f"Invalid '{where}': empty array. {MIN_ONE}"
        yield Breach("calls", text, where, "empty_array", index=index)
    for place, call in enumerate(calls):
        yield from _call(index, f"{where}[{place}]", call)


def _call(index: int, where: str, call: Any) -> Iterator[Breach]:
    if not isinstance(call, Mapping):
        yield wrong_type(where, "an object", call, index)
        return
    if not isinstance(call.get("id"), str):
        yield missing_field(f"{where}.id", index)
    if call.get("type") == "custom":
        return
    function = call.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        yield missing_field(f"{where}.function.name", index)
    elif not is_json(function.get("arguments")):
        text = f"Failed to parse tool call arguments as JSON: '{where}.function.arguments'."
        yield Breach("arguments", text, f"{where}.function.arguments", "invalid_value", index=index)


def _pairing(messages: Sequence[Any], complete: bool) -> Iterator[Breach]:
    """Check that each batch of calls is followed by its results, one for each call."""
    batch: list[str] | None = None
    answered: list[str] = []
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role == "tool":
            yield from _result(index, message.get("tool_call_id"), batch, answered)
            continue
        yield from _unanswered(index, batch, answered)
        batch, answered = None, []
        if role == "assistant" and message.get("tool_calls"):
            batch = _ids(message["tool_calls"])
            yield from _twice(index, batch)
    if complete:
        yield from _unanswered(len(messages), batch, answered)


def _result(
    index: int, call_id: Any, batch: list[str] | None, answered: list[str]
) -> Iterator[Breach]:
    param = f"messages.[{index}].tool_call_id"
    if batch is None:
        text = (
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
            "message with 'tool_calls'."
        )
        yield Breach("orphan_result", text, f"messages.[{index}].role", index=index)
    elif call_id in answered:
        text = f"Duplicate value for 'tool_call_id' of '{call_id}' in message[{index}]."
        yield Breach("second_result", text, param, index=index)
    elif call_id not in batch:
        text = (
            f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of "
            "previous message."
        )
        yield Breach("orphan_result", text, param, index=index)
    else:
        answered.append(call_id)


def _unanswered(index: int, batch: list[str] | None, answered: list[str]) -> Iterator[Breach]:
    missing = [call_id for call_id in batch or () if call_id not in answered]
    if missing:
        text = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(missing)
        )
        yield Breach("open_call", text, f"messages.[{index}].role", index=index)


def _twice(index: int, batch: list[str]) -> Iterator[Breach]:
    for call_id in sorted({each for each in batch if batch.count(each) > 1}):
        text = f"Duplicate value for 'tool_calls.id' of '{call_id}' in message[{index}]."
        yield Breach("duplicate_id", text, f"messages.[{index}].tool_calls", index=index)


def _ids(calls: Any) -> list[str]:
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        return []
    ids = (call.get("id") for call in calls if isinstance(call, Mapping))
    return [call_id for call_id in ids if isinstance(call_id, str)]
