"""Making a history valid that somebody else broke, by the smallest edits, all of them reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar, overload

import msgspec

from ctxgc.core.message import Format, Message
from ctxgc.errors import MessageError
from ctxgc.wire.draft import Draft, Fix
from ctxgc.wire.mend_pairs import mend_pairs
from ctxgc.wire.mend_parts import (
    mend_arguments,
    mend_content,
    mend_first,
    mend_server_tools,
    mend_thinking,
    mend_unique,
)
from ctxgc.wire.messages import RawMessage, render
from ctxgc.wire.validation import SHAPE, as_message, check_request

T = TypeVar("T")


class RepairResult(msgspec.Struct, Generic[T], frozen=True):
    """A valid history, and what was done to make it so; nothing that was taken out is lost."""

    messages: list[T]
    fixes: list[Fix]


@overload
def repair(
    messages: Sequence[Message],
    format: Format,
    *,
    complete: bool = True,
) -> RepairResult[Message]: ...


@overload
def repair(
    messages: Sequence[RawMessage],
    format: Format,
    *,
    complete: bool = True,
) -> RepairResult[dict[str, Any]]: ...


def repair(
    messages: Sequence[Message] | Sequence[RawMessage],
    format: Format,  # noqa: A002 - the word of the public face
    *,
    complete: bool = True,
) -> RepairResult[Message] | RepairResult[dict[str, Any]]:
    """Return the history as its provider accepts it, with a list of fixes; a valid one unchanged.

    Parsed messages come back as parsed messages, provider messages as provider messages. Results
    move behind their calls, missing ones are added as interrupted, and what answers nothing is
    taken out of the history and given back in its fix. With `complete=False` calls at the very
    end keep waiting.
    """
    check_request(messages, format)
    draft = _draft(messages, format)
    mend_unique(draft)
    mend_content(draft)
    mend_arguments(draft)
    mend_server_tools(draft, complete=complete)
    mend_pairs(draft, complete=complete)
    mend_thinking(draft, complete=complete)
    mend_first(draft)
    # A result may have come behind the empty last message that Anthropic allows.
    mend_content(draft)
    if messages and all(isinstance(message, Message) for message in messages):
        return RepairResult(draft.messages, draft.fixes)
    return RepairResult(render(draft.messages), draft.fixes)


def _draft(messages: Sequence[Message] | Sequence[RawMessage], format: Format) -> Draft:  # noqa: A002
    parsed, places, fixes = [], [], []
    for index, message in enumerate(messages):
        try:
            parsed.append(as_message(message, format, index))
            places.append(index)
        except MessageError as error:
            fixes.append(_dropped(index, message, error))
    return Draft(parsed, fixes, places)


def _dropped(index: int, message: Message | RawMessage, error: MessageError) -> Fix:
    return Fix(
        promise=SHAPE,
        action="dropped",
        message_id=f"message-{index}",
        text=error.message,
        index=index,
        content=message.data if isinstance(message, Message) else message,
    )
