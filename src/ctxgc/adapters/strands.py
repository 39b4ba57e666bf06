"""Strands: a conversation manager that keeps `agent.messages` within the window.

gc = CtxgcConversationManager(context_limit=200_000)
agent = Agent(model=model, tools=[*tools, *gc.tools()], conversation_manager=gc)
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from strands import tool
from strands.agent.conversation_manager import ConversationManager
from strands.hooks import BeforeModelCallEvent, HookRegistry
from strands.types.exceptions import ContextWindowOverflowException

from ctxgc.adapters.session_pool import (
    Histories,
    SessionPool,
    ShownMessage,
    TakenHistory,
    arguments_of,
    call_of,
    recovered,
    said_by_assistant,
    text_of,
)

StrandsMessage = dict[str, Any]


class CtxgcConversationManager(ConversationManager):
    """Collects before each model call, in place; what leaves is in the session's store.

    Args:
        session_id: the session to continue; else a new one, which a session manager of the agent remembers.
        options: anything that `ctxgc.Session` takes, such as `context_limit`, `store` or `config`.
    """

    def __init__(self, *, session_id: str | None = None, **options: Any) -> None:
        super().__init__()
        self._key = session_id or uuid.uuid4().hex
        self.sessions = SessionPool(**options)
        self._histories = Histories(self.sessions, StrandsMessages(), persists=True)

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Collect before each model call."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(BeforeModelCallEvent, self._before_model_call)

    def apply_management(self, agent: Any, **kwargs: Any) -> None:
        """Do nothing after a turn: what the next one needs is known before its first call."""

    def reduce_context(self, agent: Any, e: Exception | None = None, **kwargs: Any) -> None:  # noqa: ARG002
        """Make the messages fewer, because the model refused them as too long.

        Raises:
            ContextWindowOverflowException: they cannot get fewer.
        """
        taken = self._take(agent)
        error = e or ContextWindowOverflowException("prompt is too long")
        if not recovered(taken.session, error):
            raise error
        self._show(agent, taken)

    def get_state(self) -> dict[str, Any]:
        """Return what continues the session after a restart."""
        return {**super().get_state(), "ctxgc_session": self._key}

    def restore_from_session(self, state: dict[str, Any]) -> list[StrandsMessage] | None:
        """Continue the session that the state names."""
        self._key = state.get("ctxgc_session", self._key)
        restored: list[StrandsMessage] | None = super().restore_from_session(state)
        return restored

    def tools(self) -> list[Any]:
        """Return the recall tools for `Agent(tools=[...])`."""

        def context_recall(
            handle: str, lines: list[int] | None = None, pattern: str | None = None
        ) -> str:
            given = {"handle": handle, "lines": lines, "pattern": pattern}
            return self.sessions.answer("context_recall", given, self._key)

        def context_search(query: str, limit: int | None = None) -> str:
            given = {"query": query, "limit": limit}
            return self.sessions.answer("context_search", given, self._key)

        said = {each.name: each.description for each in self.sessions.recall_tools()}
        return [
            tool(function, name=function.__name__, description=said[function.__name__])
            for function in (context_recall, context_search)
        ]

    def _before_model_call(self, event: BeforeModelCallEvent) -> None:
        self._show(event.agent, self._take(event.agent))

    def _take(self, agent: Any) -> TakenHistory[StrandsMessage]:
        specs = agent.tool_registry.get_all_tool_specs()
        system = agent.system_prompt
        return self._histories.take(
            self._key,
            agent.messages,
            system=system if isinstance(system, str) else "",
            tools=[_schema(spec) for spec in specs],
        )

    def _show(self, agent: Any, taken: TakenHistory[StrandsMessage]) -> None:
        view = self._histories.view(taken)
        self.removed_message_count += max(len(taken.items) - len(view), 0)
        agent.messages[:] = view


class StrandsMessages:
    """How messages of Bedrock's Converse form are read and written: each block may leave by itself."""

    def encode(self, message: StrandsMessage) -> list[dict[str, Any]]:
        """Return a message as OpenAI chat writes it."""
        blocks = message["content"]
        if message["role"] == "assistant":
            text = "".join(block.get("text", "") for block in blocks)
            uses = [block["toolUse"] for block in blocks if "toolUse" in block]
            calls = [call_of(use["toolUseId"], use["name"], use["input"]) for use in uses]
            return [said_by_assistant(text, calls)]
        return [_block_to_chat(block) for block in blocks]

    def edit(self, message: StrandsMessage, parts: Mapping[int, ShownMessage]) -> StrandsMessage:
        """Return a copy with the blocks that are left."""
        blocks = message["content"]
        if message["role"] == "user":
            kept = [
                blocks[number]
                if each.is_same
                else _edited_block(blocks[number], text_of(each.data))
                for number, each in sorted(parts.items())
            ]
            return {**message, "content": kept}
        data = parts[0].data
        left = {call["id"]: arguments_of(call) for call in data.get("tool_calls", ())}
        uses = [
            {"toolUse": {**block["toolUse"], "input": left[block["toolUse"]["toolUseId"]]}}
            for block in blocks
            if "toolUse" in block and block["toolUse"]["toolUseId"] in left
        ]
        said = [{"text": text_of(data)}] if text_of(data) else []
        return {**message, "content": [*said, *uses]}

    def make(self, data: dict[str, Any]) -> StrandsMessage:
        """Return a message that ctxgc wrote."""
        role = "assistant" if data["role"] == "assistant" else "user"
        return {"role": role, "content": [{"text": text_of(data)}]}


def _block_to_chat(block: dict[str, Any]) -> dict[str, Any]:
    result = block.get("toolResult")
    if result is None:
        return {"role": "user", "content": block.get("text") or str(sorted(block))}
    text = "\n".join(
        part["text"] if "text" in part else str(part.get("json", sorted(part)))
        for part in result["content"]
    )
    return {"role": "tool", "tool_call_id": result["toolUseId"], "content": text}


def _edited_block(block: dict[str, Any], text: str) -> dict[str, Any]:
    if "toolResult" in block:
        return {"toolResult": {**block["toolResult"], "content": [{"text": text}]}}
    return {"text": text}


def _schema(spec: Mapping[str, Any]) -> dict[str, Any]:
    described = {"name": spec["name"], "description": spec["description"]}
    return {
        "type": "function",
        "function": {**described, "parameters": spec["inputSchema"]["json"]},
    }
