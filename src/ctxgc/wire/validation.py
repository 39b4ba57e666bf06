"""The check of a whole history, for provider messages and parsed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ctxgc.core import FORMATS, Format, Message
from ctxgc.errors import MessageError
from ctxgc.invariants import Violation, check
from ctxgc.wire.messages import RawMessage, parse

SHAPE = "P14.shape"


def validate(
    messages: Sequence[Message | RawMessage],
    format: Format,  # noqa: A002 - the word of the public face
    *,
    complete: bool = True,
) -> list[Violation]:
    """Return everything that the provider would refuse in a history, in its order.

    Takes provider messages or parsed ones. A message of unknown shape is itself a violation; the
    rest is still checked. With `complete=False` calls at the very end may wait for their results.
    Only the list itself is known: the results of a Responses request that continues a
    `previous_response_id` answer no call here.
    """
    check_request(messages, format)
    parsed, places, found = [], [], []
    for index, message in enumerate(messages):
        try:
            parsed.append(as_message(message, format, index))
            places.append(index)
        except MessageError as error:
            found.append(shape_violation(index, error))
    found += [
        msgspec.structs.replace(violation, index=places[violation.index])
        for violation in check(parsed, complete=complete)
    ]
    return sorted(found, key=lambda violation: violation.index)


def check_request(messages: object, format: Format) -> None:  # noqa: A002
    """Refuse anything but a list of messages in a known format.

    Raises:
        MessageError: `details["field"]` says which of the two is wrong.
    """
    if isinstance(messages, str | bytes | dict) or not isinstance(messages, Sequence):
        raise MessageError(
            f"`messages` must be a list of messages, got {type(messages).__name__}",
            hint="pass a list of messages",
            field="messages",
        )
    if format not in FORMATS:
        raise MessageError(
            f"`format` {format!r} is unknown",
            hint=f"known formats: {', '.join(FORMATS)}",
            field="format",
        )


def as_message(message: Message | RawMessage, format: Format, index: int) -> Message:  # noqa: A002
    """Return a message in parts; one that has no id yet is named by its index."""
    if not isinstance(message, Message):
        return parse(message, format, f"message-{index}")
    if message.format != format:
        raise MessageError(
            f"the message is in the format {message.format!r}, not {format!r}",
            hint="check the messages of each format separately",
            field="format",
        )
    return message


def shape_violation(index: int, error: MessageError) -> Violation:
    """Return the violation for a message that cannot be read."""
    return Violation(
        promise=SHAPE,
        index=index,
        message_id=f"message-{index}",
        text=error.message,
        provider_error=f"Invalid value for messages[{index}]: {_field(error.details)}",
        fix="take the message out of the view",
    )


def _field(details: dict[str, Any]) -> str:
    return f"`{details['field']}`" if "field" in details else "unknown shape"
