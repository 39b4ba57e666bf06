"""Haystack: a compactor for the agent's `CompactionHook`.

hook = CompactionHook(CtxgcCompactor(context_limit=200_000), context_window=200_000)
agent = Agent(chat_generator=..., tools=[...], hooks={"before_llm": [hook]})
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from haystack.core.serialization import default_from_dict, default_to_dict
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.token_counters import TokenCounter
from haystack.tools import Tool

from ctxgc.adapters.session_pool import (
    Histories,
    SessionPool,
    ShownMessage,
    arguments_of,
    call_of,
    said_by_assistant,
    text_of,
)


class CtxgcCompactor:
    """Moves out what is dead, then what is worth least; the agent's state keeps the shorter history.

    Args:
        options: anything that `ctxgc.Session` takes, such as `context_limit`, `store` or `config`.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self.sessions = SessionPool(**options)
        self._histories = Histories(self.sessions, HaystackMessages(), persists=True)
        self._schemas: list[dict[str, Any]] = []

    def compact(
        self, messages: list[ChatMessage], target_tokens: int, token_counter: TokenCounter
    ) -> list[ChatMessage] | None:
        """Return a shorter history, or None if nothing can leave."""
        taken = self._histories.take(None, messages, tools=self._schemas)
        size = token_counter.count(messages)
        spare = taken.session.usage().total_tokens - size
        taken.session.collect(max(target_tokens + spare, 1))
        view = self._histories.view(taken)
        return view if token_counter.count(view) < size else None

    async def compact_async(
        self, messages: list[ChatMessage], target_tokens: int, token_counter: TokenCounter
    ) -> list[ChatMessage] | None:
        """Do the same without making the event loop wait."""
        return await asyncio.to_thread(self.compact, messages, target_tokens, token_counter)

    def tools(self) -> list[Tool]:
        """Return the recall tools for `Agent(tools=[...])`; the tombstones name their calls from now on."""
        found = self.sessions.recall_tools()
        self._schemas = [tool.schema("openai") for tool in found]
        return [
            Tool(
                name=tool.name,
                description=tool.description,
                parameters=tool.parameters,
                function=lambda name=tool.name, **given: self.sessions.answer(name, given),
            )
            for tool in found
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the options, for Haystack's serialization."""
        made: dict[str, Any] = default_to_dict(self, **self._options)
        return made

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CtxgcCompactor:
        """Return a compactor with the options that were serialized."""
        made: CtxgcCompactor = default_from_dict(cls, data)
        return made


class HaystackMessages:
    """How Haystack's messages are read and written."""

    def encode(self, message: ChatMessage) -> list[dict[str, Any]]:
        """Return a message as OpenAI chat writes it; one with several results is several messages."""
        text = "\n".join(message.texts)
        if message.tool_call_results:
            return [_result(each) for each in message.tool_call_results]
        if message.role.value == "assistant":
            calls = [
                call_of(call.id or "", call.tool_name, call.arguments)
                for call in message.tool_calls
            ]
            return [said_by_assistant(text, calls)]
        return [{"role": message.role.value, "content": text}]

    def edit(self, message: ChatMessage, parts: Mapping[int, ShownMessage]) -> ChatMessage:
        """Return a message with another text, other arguments, or fewer results."""
        data = next(iter(parts.values())).data
        if message.tool_call_results:
            kept = [
                replace(message.tool_call_results[number], result=text_of(each.data))
                for number, each in sorted(parts.items())
            ]
            return ChatMessage(_role=message.role, _content=kept, _meta=message.meta)
        if message.role.value != "assistant":
            return self.make(data)
        left = {call["id"]: arguments_of(call) for call in data.get("tool_calls", ())}
        calls: list[ToolCall] = [
            replace(call, arguments=left[call.id]) for call in message.tool_calls if call.id in left
        ]
        return ChatMessage.from_assistant(text_of(data) or None, message.meta, tool_calls=calls)

    def make(self, data: dict[str, Any]) -> ChatMessage:
        """Return a message that ctxgc wrote."""
        if data["role"] == "assistant":
            return ChatMessage.from_assistant(text_of(data))
        make = ChatMessage.from_system if data["role"] == "system" else ChatMessage.from_user
        return make(text_of(data))


def _result(result: Any) -> dict[str, Any]:
    said = result.result
    if not isinstance(said, str):
        texts = [getattr(part, "text", None) for part in said]
        said = "\n".join(text for text in texts if text) or json.dumps(
            [type(p).__name__ for p in said]
        )
    return {"role": "tool", "tool_call_id": result.origin.id or "", "content": said}
