"""Anthropic's messages over the official SDK, or one of its variants for clouds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ctxgc.client.answer import Answer, Call, mark_truncated
from ctxgc.client.provider import Endpoint, OnText
from ctxgc.client.tools import Tool, ToolOutcome
from ctxgc.core import Format

DEFAULT_OUTPUT = 4096
LONG_OUTPUT = 16_000
_THINKING = ("thinking", "redacted_thinking")
_CUT_OFF = ("max_tokens", "model_context_window_exceeded")


class AnthropicMessages(Endpoint, frozen=True, kw_only=True):
    """Messages."""

    format: ClassVar[Format] = "anthropic"

    def user(self, text: str) -> dict[str, Any]:
        """Return a user message."""
        return {"role": "user", "content": text}

    def results(self, outcomes: Sequence[ToolOutcome]) -> list[dict[str, Any]]:
        """Return one user message that holds every result."""
        blocks = [
            {
                "type": "tool_result",
                "tool_use_id": each.call_id,
                "content": each.text,
                **({"is_error": True} if each.is_error else {}),
            }
            for each in outcomes
        ]
        return [{"role": "user", "content": blocks}]

    def schema(self, tool: Tool) -> dict[str, Any]:
        """Return a tool as messages describe it."""
        head = {"name": tool.name, "description": tool.description}
        return {**head, "input_schema": tool.parameters}

    def send(
        self,
        messages: list[dict[str, Any]],
        *,
        system: str | None,
        tools: Sequence[dict[str, Any]],
        on_text: OnText | None,
    ) -> Answer:
        """Ask the model; with `on_text` the answer is streamed to it piece by piece."""
        most = self.max_output_tokens or DEFAULT_OUTPUT
        fields = self.given(
            model=self.model, messages=messages, system=system, tools=list(tools), max_tokens=most
        )
        # The SDK refuses to wait for a long answer in one piece.
        if on_text is None and fields["max_tokens"] <= LONG_OUTPUT:
            return _answer(self.sdk.messages.create(**fields))
        with self.sdk.messages.stream(**fields) as stream:
            for text in stream.text_stream:
                if on_text is not None:
                    on_text(text)
            return _answer(stream.get_final_message())


def _answer(message: Any) -> Answer:
    blocks = [block for block in map(_kept, message.content) if not _is_blank(block)]
    # Thinking without an answer after it may not be sent again.
    while blocks and blocks[-1]["type"] in _THINKING:
        blocks.pop()
    calls = [
        Call(call_id=block["id"], name=block["name"], arguments=dict(block["input"]))
        for block in blocks
        if block["type"] == "tool_use"
    ]
    usage = message.usage
    return Answer(
        messages=[{"role": "assistant", "content": blocks}] if blocks else [],
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        calls=mark_truncated(calls) if message.stop_reason in _CUT_OFF else calls,
        stop=message.stop_reason or "",
        input_tokens=usage.input_tokens
        + (usage.cache_creation_input_tokens or 0)
        + (usage.cache_read_input_tokens or 0),
        output_tokens=usage.output_tokens,
        raw=message,
    )


def _kept(block: Any) -> dict[str, Any]:
    """Return a block as it may be sent again: without the empty fields that the SDK adds."""
    data = block.to_dict()
    return {
        name: value for name, value in data.items() if value is not None and name != "parsed_output"
    }


def _is_blank(block: dict[str, Any]) -> bool:
    return block["type"] == "text" and not block["text"].strip()
