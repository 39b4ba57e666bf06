"""Steps in the format of each provider, as the plain dicts that an agent would send."""

from __future__ import annotations

import base64
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import count
from typing import Any

from ctxgc.testing.agent.tools import SCHEMAS, AgentCall, AgentStep

Message = dict[str, Any]


class Renderer(ABC):
    """Writes steps in one provider's format.

    Call ids are numbered through, or start again with every step as some servers do (`reuse_ids`),
    or are taken from `ids`.
    """

    _prefix = "call_"

    def __init__(
        self, *, thinking: bool = False, reuse_ids: bool = False, ids: Iterator[str] | None = None
    ) -> None:
        self._thinking = thinking
        self._ids = None if reuse_ids else ids or self._numbered(1)

    @abstractmethod
    def messages(self, step: AgentStep) -> list[Message]:
        """Return the messages of one step."""

    @abstractmethod
    def tools(self) -> list[Message]:
        """Return the tool definitions of a request."""

    def _numbered(self, first: int) -> Iterator[str]:
        return (f"{self._prefix}{number:06d}" for number in count(first))

    def _calls(self, step: AgentStep) -> list[tuple[str, AgentCall]]:
        """Return the calls of a step with their ids."""
        ids = self._ids or self._numbered(0)
        return [(next(ids), call) for call in step.calls]

    def _thought(self, step: AgentStep) -> str:
        return step.thinking if self._thinking else ""


class ChatRendering(Renderer):
    """The format of chat completions."""

    def messages(self, step: AgentStep) -> list[Message]:
        """Return the message, and one tool message for each result."""
        if not step.calls:
            return [{"role": step.role, "content": step.text}]
        calls = self._calls(step)
        said: Message = {"role": "assistant", "content": step.text or None}
        if thought := self._thought(step):
            said["reasoning_content"] = thought
        said["tool_calls"] = [_function(call_id, call) for call_id, call in calls]
        results = (
            {"role": "tool", "tool_call_id": call_id, "content": call.output}
            for call_id, call in calls
        )
        return [said, *results]

    def tools(self) -> list[Message]:
        """Return the tools as functions."""
        return [{"type": "function", "function": dict(schema)} for schema in SCHEMAS]


class AnthropicRendering(Renderer):
    """The format of the messages API."""

    _prefix = "toolu_"

    def messages(self, step: AgentStep) -> list[Message]:
        """Return the message, and one user message with all results."""
        if not step.calls:
            return [{"role": step.role, "content": step.text}]
        calls = self._calls(step)
        content = list(self._head(step))
        content += (
            {"type": "tool_use", "id": call_id, "name": call.name, "input": dict(call.arguments)}
            for call_id, call in calls
        )
        results = [_result(call_id, call) for call_id, call in calls]
        return [{"role": "assistant", "content": content}, {"role": "user", "content": results}]

    def tools(self) -> list[Message]:
        """Return the tools with their input schemas."""
        return [
            {
                "name": schema["name"],
                "description": schema["description"],
                "input_schema": schema["parameters"],
            }
            for schema in SCHEMAS
        ]

    def _head(self, step: AgentStep) -> Iterator[Message]:
        if thought := self._thought(step):
            digest = hashlib.sha256(thought.encode()).digest()
            signature = base64.b64encode(digest).decode()
            yield {"type": "thinking", "thinking": thought, "signature": signature}
        if step.text:
            yield {"type": "text", "text": step.text}


class ResponsesRendering(Renderer):
    """The format of the Responses API: every item is a message of its own."""

    def __init__(self, *, thinking: bool = False, reuse_ids: bool = False) -> None:
        super().__init__(thinking=thinking, reuse_ids=reuse_ids)
        self._numbers = count(1)

    def messages(self, step: AgentStep) -> list[Message]:
        """Return the items: reasoning, text, all calls, then all outputs."""
        calls = self._calls(step)
        items = list(self._head(step))
        items += (
            {
                "type": "function_call",
                "call_id": call_id,
                "name": call.name,
                "arguments": call.arguments_json,
            }
            for call_id, call in calls
        )
        items += (
            {"type": "function_call_output", "call_id": call_id, "output": call.output}
            for call_id, call in calls
        )
        return items

    def tools(self) -> list[Message]:
        """Return the tools as flat functions."""
        return [{"type": "function", "strict": False, **schema} for schema in SCHEMAS]

    def _head(self, step: AgentStep) -> Iterator[Message]:
        if thought := self._thought(step):
            summary = [{"type": "summary_text", "text": thought}]
            yield {"type": "reasoning", "id": f"rs_{next(self._numbers):06d}", "summary": summary}
        if step.text:
            kind = "input_text" if step.role == "user" else "output_text"
            content = [{"type": kind, "text": step.text}]
            yield {"type": "message", "role": step.role, "content": content}


def _function(call_id: str, call: AgentCall) -> Message:
    function = {"name": call.name, "arguments": call.arguments_json}
    return {"id": call_id, "type": "function", "function": function}


def _result(call_id: str, call: AgentCall) -> Message:
    result: Message = {"type": "tool_result", "tool_use_id": call_id, "content": call.output}
    if call.failed:
        result["is_error"] = True
    return result
