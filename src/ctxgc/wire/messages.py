"""Provider messages in and out: read into parts, and rendered as they came in."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from ctxgc.core import FORMATS, Format, Message, Origin, Part, Role
from ctxgc.errors import MessageError
from ctxgc.wire import anthropic, openai_chat, openai_responses
from ctxgc.wire.blocks import Json
from ctxgc.wire.json_text import copies, dump, load, snapshot


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
