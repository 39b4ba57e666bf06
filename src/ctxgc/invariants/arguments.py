"""P1: the arguments of a call are JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ctxgc.core.message import Message, Part
from ctxgc.invariants.blocks import block_of
from ctxgc.invariants.violation import SingleInvariant, Violation


class ArgumentsAreJson(SingleInvariant):
    """Replayed calls carry arguments that parse; free-form custom tools carry any text."""

    id = "P1.arguments"
    sentence = "The arguments of every tool call are valid JSON."
    formats = ("openai", "responses")

    def breaches_among(
        self, messages: Sequence[Message], indices: Iterable[int]
    ) -> list[Violation]:
        """Return the calls whose arguments do not parse."""
        return [
            Violation(
                promise=self.id,
                index=index,
                message_id=message.message_id,
                call_id=part.call_id,
                text=f"the arguments of the call {part.call_id!r} are not valid JSON",
                provider_error="failed to parse tool call arguments as json",
                fix='wrap the text as {"_invalid": ...}; empty arguments become {}',
            )
            for index in indices
            for message in (messages[index],)
            for part in message.parts
            if part.kind == "tool_call" and not has_valid_arguments(message, part)
        ]


def has_valid_arguments(message: Message, part: Part) -> bool:
    """Tell whether the arguments of a call may be replayed."""
    return part.server_side or not _takes_json(message, part) or is_json(part.text)


def is_json(text: str) -> bool:
    """Tell whether a text is one JSON value by the letter of the standard."""
    try:
        _STRICT.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _takes_json(message: Message, part: Part) -> bool:
    block = block_of(message, part)
    return "arguments" in block or "function" in block


def _refuse(constant: str) -> None:
    raise ValueError(constant)


_STRICT = json.JSONDecoder(parse_int=str, parse_constant=_refuse)
