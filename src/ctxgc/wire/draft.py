"""A history under repair: every change goes through here and is written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from ctxgc.core.message import Message
from ctxgc.invariants.blocks import block_of
from ctxgc.invariants.pairs import Ref
from ctxgc.wire.edit import drop_parts
from ctxgc.wire.json_text import copy

Action = Literal["dropped", "moved", "added", "rewritten"]
Reason: TypeAlias = tuple[str, str]


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """One change that repair made; `content` is what it took out or wrote over.

    `index` is the place in the history that was handed in, None for a message that was added.
    """

    promise: str
    action: Action
    message_id: str
    text: str
    index: int | None = None
    call_id: str | None = None
    content: Any = None


class Draft:
    """The messages as repaired so far, and the fixes in the order they were made."""

    def __init__(self, messages: Sequence[Message], fixes: Sequence[Fix], places: Sequence[int]):
        self.messages = list(messages)
        self.fixes = list(fixes)
        self._places = {
            message.message_id: place for message, place in zip(messages, places, strict=True)
        }

    def note(
        self,
        promise: str,
        action: Action,
        message: Message,
        text: str,
        *,
        call_id: str | None = None,
        content: Any = None,
    ) -> None:
        """Write a fix down."""
        self.fixes.append(
            Fix(
                promise=promise,
                action=action,
                message_id=message.message_id,
                text=text,
                index=self._places.get(message.message_id),
                call_id=call_id,
                content=copy(content),
            )
        )

    def drop(self, reasons: Mapping[Ref, Reason]) -> None:
        """Take parts out, each for its reason; a message of which nothing may stand alone goes."""
        places: dict[int, list[Ref]] = {}
        for ref in sorted(reasons):
            places.setdefault(ref.message, []).append(ref)
        for index in sorted(places, reverse=True):
            for ref in places[index]:
                self._note_part(ref, *reasons[ref])
            self._drop_parts(index, {ref.part for ref in places[index]})

    def _note_part(self, ref: Ref, promise: str, text: str) -> None:
        message = self.messages[ref.message]
        content = block_of(message, message.parts[ref.part])
        self.note(promise, "dropped", message, text, call_id=ref.call_id, content=content)

    def _drop_parts(self, index: int, places: set[int]) -> None:
        message = self.messages[index]
        left = drop_parts(message, places)
        if left is None and len(places) < len(message.parts):
            text = "nothing else of the message may stand alone"
            self.note(self.fixes[-1].promise, "dropped", message, text, content=message.data)
        self.put(index, left)

    def put(self, index: int, message: Message | None) -> None:
        """Put another message, or none, in the place of one; the later ones then move up."""
        self.messages[index : index + 1] = [] if message is None else [message]
