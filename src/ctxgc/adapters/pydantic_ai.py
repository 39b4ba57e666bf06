"""pydantic-ai: a capability that sends the view, and a history processor that keeps it.

agent = Agent(model, capabilities=[CtxgcCapability(context_limit=200_000)])
agent = Agent(model, capabilities=[ProcessHistory(CtxgcHistory(context_limit=200_000))])
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

from pydantic_ai import RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import RetryModelRequest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import FunctionToolset

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
from ctxgc.session import RecallTool


class CtxgcCapability(AbstractCapability[Any]):
    """Sends a view that fits with each attempt; the run keeps every message.

    Args:
        recall: whether the agent gets the tools `context_recall` and `context_search`.
        options: anything that `Session` takes, such as `context_limit`, `store` or `config`.
    """

    def __init__(self, *, recall: bool = True, **options: Any) -> None:
        self.sessions = SessionPool(**options)
        self._recall = recall
        self._histories = Histories(self.sessions, PydanticMessages())

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Replace the messages of one attempt by the view."""
        view = await asyncio.to_thread(self._view, ctx, request_context)
        return replace(request_context, messages=view)

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> NoReturn:
        """Make the view smaller and try again if the error says that it was too long."""
        session = self.sessions.session(_key(ctx), model=request_context.model.model_name)
        if await asyncio.to_thread(recovered, session, error):
            raise RetryModelRequest from error
        raise error

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """Return the recall tools."""
        if not self._recall:
            return None
        return FunctionToolset([self._tool(tool) for tool in self.sessions.recall_tools()])

    def _view(self, ctx: RunContext[Any], asked: ModelRequestContext) -> list[ModelMessage]:
        return self._histories.view(_taken(self._histories, ctx, asked.messages, asked))

    def _tool(self, tool: RecallTool) -> Tool[Any]:
        def answer(ctx: RunContext[Any], **given: Any) -> str:
            return self.sessions.answer(tool.name, given, _key(ctx))

        return Tool.from_schema(
            answer, tool.name, tool.description, tool.parameters, takes_ctx=True
        )


class CtxgcHistory:
    """A history processor for `ProcessHistory`: the view becomes the history of the run. No recall."""

    def __init__(self, **options: Any) -> None:
        self.sessions = SessionPool(**options)
        self._histories = Histories(self.sessions, PydanticMessages(), persists=True)

    async def __call__(
        self, ctx: RunContext[Any], messages: list[ModelMessage]
    ) -> list[ModelMessage]:
        """Return the view of the messages."""
        return await asyncio.to_thread(self._view, ctx, messages)

    def _view(self, ctx: RunContext[Any], messages: list[ModelMessage]) -> list[ModelMessage]:
        return self._histories.view(_taken(self._histories, ctx, messages))


def _key(ctx: RunContext[Any]) -> str | None:
    return ctx.conversation_id or ctx.run_id  # type: ignore[no-any-return]


def _taken(
    histories: Histories[ModelMessage],
    ctx: RunContext[Any],
    messages: list[ModelMessage],
    asked: ModelRequestContext | None = None,
) -> TakenHistory[ModelMessage]:
    parameters = None if asked is None else asked.model_request_parameters
    tools = [] if parameters is None else parameters.function_tools
    said = [part.content for part in getattr(parameters, "instruction_parts", None) or ()]
    return histories.take(
        _key(ctx),
        messages,
        system="\n".join(said),
        tools=[_schema(tool) for tool in tools],
        model=ctx.model.model_name,
    )


def _schema(tool: Any) -> dict[str, Any]:
    named = {"name": tool.name, "description": tool.description or ""}
    return {"type": "function", "function": {**named, "parameters": tool.parameters_json_schema}}


class PydanticMessages:
    """How pydantic-ai's messages are read and written: each part of a request may leave by itself."""

    def encode(self, message: ModelMessage) -> list[dict[str, Any]]:
        """Return a message as OpenAI chat writes it."""
        if isinstance(message, ModelRequest):
            return [_part_to_chat(part) for part in message.parts]
        text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
        calls = [
            call_of(part.tool_call_id, part.tool_name, part.args_as_json_str())
            for part in message.parts
            if isinstance(part, ToolCallPart)
        ]
        return [said_by_assistant(text, calls)]

    def edit(self, message: ModelMessage, parts: Mapping[int, ShownMessage]) -> ModelMessage:
        """Return a copy with the parts that are left."""
        if isinstance(message, ModelRequest):
            kept = [
                message.parts[number] if each.is_same
                else replace(message.parts[number], content=text_of(each.data))
                for number, each in sorted(parts.items())
            ]  # fmt: skip
            return replace(message, parts=kept)
        data = parts[0].data
        left = {call["id"]: arguments_of(call) for call in data.get("tool_calls", ())}
        text = [TextPart(text_of(data))] if text_of(data) else []
        calls = [
            replace(part, args=left[part.tool_call_id])
            for part in message.parts
            if isinstance(part, ToolCallPart) and part.tool_call_id in left
        ]
        return replace(message, parts=[*text, *calls])

    def make(self, data: dict[str, Any]) -> ModelMessage:
        """Return a message that ctxgc wrote."""
        if data["role"] == "assistant":
            return ModelResponse(parts=[TextPart(text_of(data))])
        kind = SystemPromptPart if data["role"] == "system" else UserPromptPart
        return ModelRequest(parts=[kind(text_of(data))])


def _part_to_chat(part: Any) -> dict[str, Any]:
    if isinstance(part, SystemPromptPart):
        return {"role": "system", "content": part.content}
    if isinstance(part, UserPromptPart):
        content = part.content
        said = content if isinstance(content, str) else "\n".join(map(str, content))
        return {"role": "user", "content": said}
    call_id = getattr(part, "tool_call_id", None)
    if call_id and getattr(part, "tool_name", None):
        text = (
            part.model_response_str()
            if hasattr(part, "model_response_str")
            else part.model_response()
        )
        return {"role": "tool", "tool_call_id": call_id, "content": text}
    return {"role": "user", "content": str(part.content)}
