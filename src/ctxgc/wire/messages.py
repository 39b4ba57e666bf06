"""Provider messages in and out: their format told, read into parts, and rendered as they came in."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from ctxgc.core import (
    FORMATS,
    Format,
    Message,
    Names,
    Origin,
    Part,
    Role,
    Text,
    is_tombstone,
    kept_of,
)
from ctxgc.errors import MessageError
from ctxgc.wire import anthropic, openai_chat, openai_responses
from ctxgc.wire.blocks import Json
from ctxgc.wire.json_text import copy, dump, load, snapshot
from ctxgc.wire.tools import strings_of

# -- The format of a history, told by what only one format has


_BLOCKS: dict[str, Format] = {
    **dict.fromkeys(("image_url", "file"), "openai"),
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), "responses"),
    **dict.fromkeys(
        (
            "tool_use",
            "tool_result",
            "thinking",
            "redacted_thinking",
            "image",
            "document",
            "server_tool_use",
            "mcp_tool_use",
            "container_upload",
            "search_result",
            "compaction",
            "fallback",
            "mcp_tool_listing",
            "tool_addition",
            "tool_removal",
        ),
        "anthropic",
    ),
}
_OF_A_SYSTEM_MESSAGE = ("clear_at", "output_config")


def detect_format(history: Iterable[Any]) -> Format:
    """Return the format of a history; plain text that fits all of them counts as `openai`.

    A history with marks of two formats raises a `MessageError` that names both.
    """
    first: dict[Format, int] = {}
    for index, message in enumerate(history):
        for mark in _marks(_read(message)):
            first.setdefault(mark, index)
    if len(first) > 1:
        places = " and ".join(
            f"{name} (message {first[name]})" for name in FORMATS if name in first
        )
        raise MessageError(
            f"the history mixes the formats {places}",
            hint="pass the format, and convert the messages of the other",
            field="format",
        )
    return next(iter(first), "openai")


def _read(message: Any) -> Any:
    """Return a message that came as JSON text as data; None if it is not JSON."""
    if not isinstance(message, str | bytes):
        return message
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return None


def _marks(message: Any) -> Iterator[Format]:
    role = _of(message, "role")
    if isinstance(_of(message, "type"), str) or (role is None and _of(message, "id") is not None):
        yield "responses"
        return
    if role in ("tool", "function") or _of(message, "tool_calls"):
        yield "openai"
    if role == "system" and any(_of(message, key) for key in _OF_A_SYSTEM_MESSAGE):
        yield "anthropic"
    content = _of(message, "content")
    for block in content if isinstance(content, list | tuple) else ():
        kind = _of(block, "type")
        if isinstance(kind, str) and kind.endswith("_tool_result"):
            yield "anthropic"
        elif isinstance(kind, str) and kind in _BLOCKS:
            yield _BLOCKS[kind]


def _of(thing: Any, field: str) -> Any:
    """Return a field of a message or a block, whether plain data or an SDK object."""
    if isinstance(thing, Mapping):
        return thing.get(field)
    return getattr(thing, field, None) if hasattr(thing, "model_dump") else None


# -- The texts of the parts of a history, each read once


_LONG = 200
_VERY_LONG = 8_000
_SLACK = 64


class PartTexts:
    """Caches the text of every part in the view."""

    def __init__(self) -> None:
        self._names = Names()
        self._known: dict[str, dict[int, tuple[str, Text]]] = {}

    def read(self, message: Message) -> None:
        """Read a message as it comes in, so that a collection need not.

        The lines of very long results are left to the collection: they would delay a request, and are few.
        """
        for number, part in enumerate(message.parts):
            text = self.of(message.message_id, number, part)
            if part.kind == "tool_result" and _LONG <= text.size < _VERY_LONG:
                _ = text.line_things
            _ = text.things

    def of(self, message_id: str, number: int, part: Part) -> Text:
        """Return the text of a part: of a call its arguments, of a tombstone the lines kept under it."""
        known = self._known.setdefault(message_id, {})
        found = known.get(number)
        if found is None or found[0] is not part.text:
            found = known[number] = (part.text, Text(_said(part), self._names))
        return found[1]

    def keep_to(self, view: Sequence[Message]) -> None:
        """Forget the messages that are not in a view, now and then: so that the cost is that of a few."""
        if len(self._known) > _SLACK + 2 * len(view):
            self.keep([message.message_id for message in view])

    def keep(self, message_ids: Collection[str]) -> None:
        """Forget all other messages."""
        for message_id in self._known.keys() - set(message_ids):
            del self._known[message_id]


def _said(part: Part) -> str:
    if part.kind == "tool_call":
        return "\n".join(filter(None, (part.name, strings_of(part.text))))
    return kept_of(part.text) if is_tombstone(part.text) else part.text


class SdkObject(Protocol):
    """An object that a provider's SDK returned, such as `response.choices[0].message`."""

    def model_dump(self, *args: Any, **kwargs: Any) -> Any:
        """Return the plain data of the object."""


RawMessage: TypeAlias = dict[str, Any] | str | bytes | SdkObject

_READERS: dict[Format, Callable[[Json], tuple[Role, tuple[Part, ...]]]] = {
    "openai": openai_chat.read,
    "responses": openai_responses.read,
    "anthropic": anthropic.read,
}


def parse(data: RawMessage, format: Format, message_id: str | None = None) -> Message:  # noqa: A002
    """Return a provider message in parts.

    A dict is copied, so its owner may change it later; JSON text is kept byte for byte; an SDK object
    becomes what the SDK sends for it. Unknown fields stay in the message. A shape that the format does
    not allow raises a `MessageError` that names the field.
    """
    if isinstance(data, str | bytes):
        plain, source = load(data)
    else:
        plain, source = snapshot(data), None
    return build(plain, format, message_id or uuid.uuid4().hex, source=source)


def build(
    data: Json,
    format: Format,  # noqa: A002
    message_id: str,
    *,
    source: bytes | None = None,
    origin: Origin = "conversation",
) -> Message:
    """Return the message for data that the caller hands over."""
    if format not in _READERS:
        raise MessageError(
            f"`format` {format!r} is unknown",
            hint=f"known formats: {', '.join(FORMATS)}",
            field="format",
        )
    role, parts = _READERS[format](data)
    return Message(
        message_id=message_id,
        role=role,
        parts=parts,
        data=data,
        format=format,
        source=source,
        origin=origin,
    )


def parse_history(history: Iterable[RawMessage], format: Format) -> list[Message]:  # noqa: A002
    """Return a history in parts; an error also names the index of the message."""
    messages = []
    for index, data in enumerate(history):
        try:
            messages.append(parse(data, format))
        except MessageError as error:
            raise MessageError(
                f"message {index}: {error.message}",
                hint=error.hint,
                **{**error.details, "index": index},
            ) from None
    return messages


def render(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the provider's messages, equal to what came in; the caller may change them freely."""
    return copies([message.data for message in messages])


def render_json(messages: Sequence[Message]) -> bytes:
    """Return a JSON array; messages that came in as bytes are in it byte for byte."""
    return b"[" + b",".join(message_bytes(message) for message in messages) + b"]"


def message_bytes(message: Message) -> bytes:
    """Return the JSON of one message: its source if it came in as bytes, else compact text."""
    return message.source if message.source is not None else dump(message.data).encode()


# -- Whole responses handed in by mistake


_CHAT = "append response.choices[0].message"
_RESPONSES = "extend with response.output"
_ANTHROPIC = 'append {"role": "assistant", "content": response.content}'


def refuse_answers(batch: Iterable[Any], asked: Format | None = None) -> None:
    """Raise MessageError for a whole provider response among messages; the hint says where the message is.

    Anthropic's responses are messages with more fields, and recordings hold them: they pass when the
    format is named.
    """
    for each in batch:
        hint = _inside(each)
        if hint and not (hint == _ANTHROPIC and asked == "anthropic"):
            raise MessageError("this is a whole provider response, not a message", hint=hint)


def _inside(thing: Any) -> str:
    """Return how to get the message out of a whole response; "" for anything else."""
    if _has(thing, "stop_reason", "usage", "content", "role"):
        return _ANTHROPIC
    if _has(thing, "role"):
        return ""
    if _has(thing, "choices") or _has(thing, "message", "finish_reason"):
        return _CHAT
    return _RESPONSES if _has(thing, "object", "output") else ""


def _has(thing: Any, *fields: str) -> bool:
    if isinstance(thing, Mapping):
        return all(field in thing for field in fields)
    return hasattr(thing, "model_dump") and all(hasattr(thing, field) for field in fields)


def copies(values: list[Any]) -> list[Any]:
    """Return copies of plain JSON data that share no container with it."""
    try:
        return list(msgspec.to_builtins(values))
    except TypeError:  # a str or a number of a user's own class
        return [copy(value) for value in values]
