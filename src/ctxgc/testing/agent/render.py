"""Steps in the words of each provider, as the plain dicts that an agent would send."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from itertools import count
from typing import Any, Protocol

from ctxgc.testing.agent.project import SCHEMAS, AgentCall, AgentStep

Message = dict[str, Any]


class Renderer(Protocol):
    """Writes steps in one provider's format."""

    def messages(self, step: AgentStep) -> list[Message]:
        """Return the messages of one step."""
        ...

    def tools(self) -> list[Message]:
        """Return the tool definitions of a request."""
        ...


class CallIds:
    """Ids for calls: each new, or starting again with every step as some servers do."""

    def __init__(self, start: str, *, reuse: bool) -> None:
        self._start = start
        self._reuse = reuse
        self._numbers = count(1)

    def of(self, step: AgentStep) -> list[tuple[str, AgentCall]]:
        """Return the calls of a step with their ids."""
        numbers = count() if self._reuse else self._numbers
        return [(f"{self._start}{next(numbers):06d}", call) for call in step.calls]


class ChatRendering:
    """The format of chat completions."""

    def __init__(self, *, thinking: bool = False, reuse_ids: bool = False) -> None:
        self._ids = CallIds("call_", reuse=reuse_ids)
        self._thinking = thinking

    def messages(self, step: AgentStep) -> list[Message]:
        """Return the message, and one tool message for each result."""
        if not step.calls:
            return [{"role": step.role, "content": step.text}]
        calls = self._ids.of(step)
        said: Message = {"role": "assistant", "content": step.text or None}
        if self._thinking and step.thinking:
            said["reasoning_content"] = step.thinking
        said["tool_calls"] = [_function(call_id, call) for call_id, call in calls]
        results = (
            {"role": "tool", "tool_call_id": call_id, "content": call.output}
            for call_id, call in calls
        )
        return [said, *results]

    def tools(self) -> list[Message]:
        """Return the tools as functions."""
        return [{"type": "function", "function": dict(schema)} for schema in SCHEMAS]


class Anthropic:
    """The format of the messages API."""

    def __init__(self, *, thinking: bool = False, reuse_ids: bool = False) -> None:
        self._ids = CallIds("toolu_", reuse=reuse_ids)
        self._thinking = thinking

    def messages(self, step: AgentStep) -> list[Message]:
        """Return the message, and one user message with all results."""
        if not step.calls:
            return [{"role": step.role, "content": step.text}]
        calls = self._ids.of(step)
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
        if self._thinking and step.thinking:
            digest = hashlib.sha256(step.thinking.encode()).digest()
            signature = base64.b64encode(digest).decode()
            yield {"type": "thinking", "thinking": step.thinking, "signature": signature}
        if step.text:
            yield {"type": "text", "text": step.text}


class Responses:
    """The format of the Responses API: every item is a message of its own."""

    def __init__(self, *, thinking: bool = False, reuse_ids: bool = False) -> None:
        self._ids = CallIds("call_", reuse=reuse_ids)
        self._numbers = count(1)
        self._thinking = thinking

    def messages(self, step: AgentStep) -> list[Message]:
        """Return the items: reasoning, text, all calls, then all outputs."""
        calls = self._ids.of(step)
        items = list(self._head(step))
        items += (
            {
                "type": "function_call",
                "call_id": call_id,
                "name": call.name,
                "arguments": json.dumps(call.arguments),
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
        if self._thinking and step.thinking:
            summary = [{"type": "summary_text", "text": step.thinking}]
            yield {"type": "reasoning", "id": f"rs_{next(self._numbers):06d}", "summary": summary}
        if step.text:
            kind = "input_text" if step.role == "user" else "output_text"
            content = [{"type": kind, "text": step.text}]
            yield {"type": "message", "role": step.role, "content": content}


def _function(call_id: str, call: AgentCall) -> Message:
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": call_id, "type": "function", "function": function}


def _result(call_id: str, call: AgentCall) -> Message:
    result: Message = {"type": "tool_result", "tool_use_id": call_id, "content": call.output}
    if call.failed:
        result["is_error"] = True
    return result
