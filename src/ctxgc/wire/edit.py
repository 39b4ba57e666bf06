"""Edits of a message. Each returns a new message with the same id; the old one stays as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from ctxgc.core import Format, Message, Origin, Part
from ctxgc.errors import MessageError
from ctxgc.invariants import is_json
from ctxgc.wire import anthropic, openai_chat, openai_responses
from ctxgc.wire.blocks import Json
from ctxgc.wire.messages import build

_WRITERS = {"openai": openai_chat, "responses": openai_responses, "anthropic": anthropic}


def replace_text(
    message: Message, part_index: int, text: str, *, keep_media: bool = True
) -> Message:
    """Return the message with another text in one text or result part.

    Cache marks and unknown fields next to the text stay. The text of a result that is a list of
    blocks becomes one block; images in it stay unless `keep_media` is false.
    """
    part = _part(message, part_index)
    if part.kind not in ("text", "tool_result") or part.server_side:
        raise _refusal(f"a part of the kind {part.kind!r} has no text to replace", part_index)
    if isinstance(message.data.get("output"), dict):
        raise _refusal("the output is a screenshot and has no text to replace", part_index)
    if message.data.get("type") == "tool_search_output":
        raise _refusal("a list of found tools has no text to replace", part_index)
    if part.kind == "text" and message.format == "anthropic" and not text.strip():
        raise _refusal("Anthropic refuses blank text; drop the part instead", part_index)
    data = _WRITERS[message.format].set_text(message.data, part, text, keep_media=keep_media)
    return _edited(message, data)


def drop_parts(message: Message, indices: Collection[int]) -> Message | None:
    """Return the message without some parts, or None if nothing is left that is valid by itself."""
    if not indices:
        return message
    gone = [_part(message, index) for index in sorted(set(indices))]
    if any(part.path == () for part in gone):
        return None
    edited = _edited(message, _WRITERS[message.format].drop(message.data, gone))
    is_valid = any(
        part.kind != "thinking" and (part.text or part.media_tokens or part.call_id)
        for part in edited.parts
    )
    return edited if is_valid else None


def replace_arguments(message: Message, part_index: int, arguments: str) -> Message:
    """Return the message with other arguments (JSON text) in one call."""
    part = _part(message, part_index)
    if part.kind != "tool_call" or part.server_side:
        raise _refusal(f"a part of the kind {part.kind!r} has no arguments", part_index)
    if not is_json(arguments):
        raise _refusal("the new arguments are not valid JSON", part_index)
    return _edited(message, _with_arguments(message, part, arguments))


def text_message(
    role: str,
    text: str,
    format: Format,  # noqa: A002 - the word of the public face
    message_id: str,
    origin: Origin = "gc_notice",
) -> Message:
    """Return a new message for a summary or a notice; never a system message (P19)."""
    if role not in ("user", "assistant"):
        raise MessageError(
            f"`role` {role!r} cannot carry text that ctxgc wrote",
            hint="use 'user' or 'assistant'",
            field="role",
        )
    if not text.strip():
        raise MessageError(
            "`text` is blank", hint="pass some text, or add no message", field="text"
        )
    data = _WRITERS[format].text_data(role, str.__str__(text))
    return build(data, format, message_id, origin=origin)


def _with_arguments(message: Message, part: Part, arguments: str) -> Json:
    if message.format == "openai":
        return openai_chat.set_arguments(message.data, part, arguments)
    if message.format == "responses":
        return openai_responses.set_arguments(message.data, arguments)
    value = json.loads(arguments)
    if not isinstance(value, dict):
        raise MessageError(
            "`input` of a tool_use block must be an object", hint="wrap the value", field="input"
        )
    return anthropic.set_input(message.data, part, value)


def _edited(message: Message, data: Json) -> Message:
    return build(data, message.format, message.message_id, origin=message.origin)


def _part(message: Message, index: int) -> Part:
    if not 0 <= index < len(message.parts):
        raise _refusal(f"the message has {len(message.parts)} parts", index)
    return message.parts[index]


def _refusal(text: str, index: int) -> MessageError:
    return MessageError(f"part {index}: {text}", hint="see `Message.parts`", part_index=index)


# -- Thinking bound to the history before it (P2)


_MODEL = re.compile(r"claude-(fable|opus|sonnet|haiku)-(\d{1,2})(?:[-.](\d{1,2})(?!\d))?")
_BOUND_SINCE = {"fable": (5, 1), "opus": (5, 5), "sonnet": (5, 5), "haiku": (5, 5)}


_BEFORE_FABLE = re.compile(r"claude-(?:instant|v?[1-3](?!\d))")


def binds_thinking(model: str) -> bool:
    """Return whether a model refuses thinking blocks after an edit.

    Claude Fable from 5.1 on, Opus, Sonnet and Haiku from 5.5 on; and, since it may be one of them, a model
    whose name does not say.
    """
    match = _MODEL.search(model)
    if match is None:
        return _BEFORE_FABLE.search(model) is None
    return (int(match[2]), int(match[3] or 0)) >= _BOUND_SINCE[match[1]]


def strip_bound_thinking(messages: Sequence[Message], first_edited: int) -> list[Message]:
    """Return the history without the thinking from an edit on; what comes before it is untouched.

    A message with nothing but thinking is dropped. Only Anthropic binds thinking.
    """
    stripped = [_without_thinking(message) for message in messages[first_edited:]]
    return [*messages[:first_edited], *(message for message in stripped if message is not None)]


def _without_thinking(message: Message) -> Message | None:
    if message.format != "anthropic":
        return message
    places = [index for index, part in enumerate(message.parts) if part.kind == "thinking"]
    return drop_parts(message, places)
