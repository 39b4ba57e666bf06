"""P14: every message says something where its provider demands it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ctxgc.core.message import Message, Part
from ctxgc.invariants.blocks import block_of
from ctxgc.invariants.violation import SingleInvariant, Violation

_NULL = "Invalid value for 'content': expected a string, got null."
_NO_CALLS = "Invalid 'tool_calls': empty array. Expected an array with minimum length 1."
_NOTHING = "all messages must have non-empty content"
_BLANK = "text content blocks must be non-empty"


class ContentIsPresent(SingleInvariant):
    """Anthropic refuses empty messages and blank text, OpenAI null content and empty call lists."""

    id = "P14.content"
    sentence = "No message is empty where its provider wants content."
    formats = ("openai", "anthropic")

    def breaches_among(
        self, messages: Sequence[Message], indices: Iterable[int]
    ) -> list[Violation]:
        """Return the messages and text blocks that are empty."""
        return [
            Violation(
                promise=self.id,
                index=index,
                message_id=message.message_id,
                text=text,
                provider_error=error,
                fix="take the empty block or message out; null content becomes empty text",
            )
            for index in indices
            for message in (messages[index],)
            if not may_be_empty(messages, index)
            for text, error in _gaps(message)
        ]


def may_be_empty(messages: Sequence[Message], index: int) -> bool:
    """Tell whether this is Anthropic's one exception: an empty assistant message at the very end."""
    message = messages[index]
    if index != len(messages) - 1 or (message.format, message.role) != ("anthropic", "assistant"):
        return False
    return message.data.get("content") in ("", [])


def _gaps(message: Message) -> Iterator[tuple[str, str]]:
    if message.format == "openai":
        if lacks_content(message):
            yield "the message has no content", _NULL
        if message.data.get("tool_calls") == []:
            yield "the list of tool calls is empty", _NO_CALLS
    elif not message.parts and not message.data.get("output_config"):
        yield "the message has no content", _NOTHING
    else:
        blank = sum(has_blank_text(message, part) for part in message.parts)
        yield from [("a text block is blank", _BLANK)] * blank


def lacks_content(message: Message) -> bool:
    """Tell whether an OpenAI message has an empty list for content, or null without an excuse."""
    content = message.data.get("content")
    return content == [] or (content is None and not is_excused(message))


def is_excused(message: Message) -> bool:
    """Tell whether an OpenAI message may do without content: it calls, refuses or speaks.

    A function of the oldest kind may return null.
    """
    if message.data.get("role") == "function":
        return "content" in message.data
    return message.role == "assistant" and any(part.kind != "thinking" for part in message.parts)


def has_blank_text(message: Message, part: Part) -> bool:
    """Tell whether an Anthropic part is, or holds, a text block without any letter."""
    if part.kind == "text":
        return not part.text.strip()
    if part.kind != "tool_result" or part.server_side:
        return False
    content = block_of(message, part).get("content")
    return isinstance(content, list) and any(is_blank(each) for each in content)


def is_blank(block: Any) -> bool:
    """Tell whether a block within a result is a text block without any letter."""
    if not isinstance(block, dict) or block.get("type") != "text":
        return False
    return not str(block.get("text", "")).strip()
