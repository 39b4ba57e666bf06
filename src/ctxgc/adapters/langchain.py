"""LangChain, LangGraph and deepagents: a middleware for agents, and a `ContextEdit`.

agent = create_agent(model, tools=[...], middleware=[CtxgcMiddleware(context_limit=200_000)])
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

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

_ROLES = {"human": "user", "system": "system", "ai": "assistant", "tool": "tool"}


class CtxgcState(AgentState):
    """The agent's state, with the id of the session that belongs to the thread."""

    ctxgc_session: NotRequired[Annotated[str, PrivateStateAttr]]  # type: ignore[valid-type]


class CtxgcMiddleware(AgentMiddleware):
    """Sends the model a view that fits; the state, and so the checkpointer, keeps every message.

    Args:
        recall: whether the agent gets the tools `context_recall` and `context_search`.
        options: anything that `Session` takes, such as `context_limit`, `store` or `config`.
    """

    state_schema = CtxgcState

    def __init__(self, *, recall: bool = True, **options: Any) -> None:
        super().__init__()
        self.sessions = SessionPool(**options)
        self.tools = _recall_tools(self.sessions) if recall else []
        self._histories = Histories(self.sessions, LangChainMessages())

    def before_agent(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002
        """Give a new thread a session of its own."""
        return None if state.get("ctxgc_session") else {"ctxgc_session": uuid.uuid4().hex}

    async def abefore_agent(self, state: Mapping[str, Any], runtime: Any) -> dict[str, Any] | None:
        """Give a new thread a session of its own."""
        return self.before_agent(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        """Ask the model with the view; ask again with a smaller one if it says that it was too long."""
        taken = self._take(request)
        while True:
            try:
                return handler(request.override(messages=self._histories.view(taken)))
            except Exception as error:
                if not recovered(taken.session, error):
                    raise

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Do the same without making the event loop wait."""
        taken = await asyncio.to_thread(self._take, request)
        while True:
            view = await asyncio.to_thread(self._histories.view, taken)
            try:
                return await handler(request.override(messages=view))
            except Exception as error:
                if not await asyncio.to_thread(recovered, taken.session, error):
                    raise

    def _take(self, request: ModelRequest) -> TakenHistory[AnyMessage]:
        system = request.system_message
        return self._histories.take(
            request.state.get("ctxgc_session"),
            request.messages,
            system="" if system is None else str(system.text),
            tools=[convert_to_openai_tool(tool) for tool in request.tools],
            model=getattr(request.model, "model_name", None)
            or getattr(request.model, "model", None),
        )


class CtxgcEdit:
    """A `ContextEdit` for `ContextEditingMiddleware(edits=[CtxgcEdit(context_limit=...)])`: no recall."""

    def __init__(self, **options: Any) -> None:
        self.sessions = SessionPool(**options)
        self._histories = Histories(self.sessions, LangChainMessages())

    def apply(
        self,
        messages: list[AnyMessage],
        *,
        count_tokens: Callable[[Sequence[AnyMessage]], int],  # noqa: ARG002 - of the protocol
    ) -> None:
        """Replace the messages by the view, in place."""
        messages[:] = self._histories.view(self._histories.take(None, messages))


class LangChainMessages:
    """How LangChain's messages are read and written."""

    def encode(self, message: AnyMessage) -> list[dict[str, Any]]:
        """Return a message as OpenAI chat writes it."""
        role, text = _ROLES[message.type], str(message.text)
        if role == "assistant":
            calls = [call_of(call["id"], call["name"], call["args"]) for call in message.tool_calls]
            return [said_by_assistant(text, calls)]
        if role == "tool":
            return [{"role": role, "tool_call_id": message.tool_call_id, "content": text}]
        return [{"role": role, "content": text}]

    def edit(self, message: AnyMessage, parts: Mapping[int, ShownMessage]) -> AnyMessage:
        """Return a copy with another text, or other arguments of its calls."""
        data = parts[0].data
        changes: dict[str, Any] = {"content": text_of(data)}
        if message.type == "ai":
            kept = {call["id"]: arguments_of(call) for call in data.get("tool_calls", ())}
            calls = [call for call in message.tool_calls if call["id"] in kept]
            changes["tool_calls"] = [{**call, "args": kept[call["id"]]} for call in calls]
        return message.model_copy(update=changes)

    def make(self, data: dict[str, Any]) -> AnyMessage:
        """Return a message that ctxgc wrote."""
        kinds = {"user": HumanMessage, "system": SystemMessage, "assistant": AIMessage}
        return kinds[data["role"]](text_of(data))


def _recall_tools(sessions: SessionPool) -> list[BaseTool]:
    def answer(name: str, runtime: ToolRuntime, given: Mapping[str, Any]) -> str:
        return sessions.answer(name, given, runtime.state.get("ctxgc_session"))

    def context_recall(
        handle: str,
        runtime: ToolRuntime,
        lines: list[int] | None = None,
        pattern: str | None = None,
    ) -> str:
        given = {"handle": handle, "lines": lines, "pattern": pattern}
        return answer("context_recall", runtime, given)

    def context_search(query: str, runtime: ToolRuntime, limit: int | None = None) -> str:
        return answer("context_search", runtime, {"query": query, "limit": limit})

    # The framework reads the annotations when the tools are made, and must find their names.
    for function in (context_recall, context_search):
        function.__annotations__["runtime"] = ToolRuntime
    said = {tool.name: tool.description for tool in sessions.recall_tools()}
    return [
        StructuredTool.from_function(function, name=name, description=said[name])
        for name, function in (
            ("context_recall", context_recall),
            ("context_search", context_search),
        )
    ]
