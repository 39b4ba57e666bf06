"""OpenAI's Agents SDK: a session that keeps every item, and an input filter that sends the view.

session = CtxgcSession(SQLiteSession("one", "agents.db"), context_limit=200_000)
await Runner.run(agent, "Hello", session=session, run_config=session.run_config())
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from agents import FunctionTool, RunConfig
from agents.memory import Session as AgentsSession
from agents.memory import SessionSettings
from agents.run import CallModelData, ModelInputData

from ctxgc.adapters.session_pool import Histories, SessionPool, ShownMessage
from ctxgc.session import RecallTool


class CtxgcSession:
    """Wraps a session of the SDK, which keeps all items; the model gets the view of them.

    Give `tools()` to the agent, and the model can get back what left. Instructions and tools of the agent are
    counted too.

    Args:
        inner: the SDK's session, such as `SQLiteSession("one", "agents.db")`; its id names ours too.
        options: anything that `ctxgc.Session` takes, such as `context_limit`, `store` or `config`.
    """

    session_settings: SessionSettings | None = None

    def __init__(self, inner: AgentsSession, **options: Any) -> None:
        self._inner = inner
        self.session_id = inner.session_id
        self.sessions = SessionPool(**options)
        self._histories = Histories(self.sessions, ResponsesItems())

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return all items of the conversation as they came, or the last `limit`."""
        return list(await self._inner.get_items(limit))

    async def add_items(self, items: list[Any]) -> None:
        """Add items to the conversation."""
        await self._inner.add_items(items)

    async def pop_item(self) -> Any:
        """Remove the last item and return it."""
        return await self._inner.pop_item()

    async def clear_session(self) -> None:
        """Remove all items; the stash keeps what left the view before."""
        await self._inner.clear_session()

    def run_config(self, **options: Any) -> RunConfig:
        """Return a `RunConfig` with our filter, and anything else that it takes."""
        return RunConfig(call_model_input_filter=self.call_model_input_filter, **options)

    async def call_model_input_filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the view in place of the input; items that did not change are the same objects."""
        items, instructions = data.model_data.input, data.model_data.instructions
        view = await asyncio.to_thread(self._view, items, instructions or "", data.agent)
        return ModelInputData(input=view, instructions=instructions)

    def tools(self) -> list[FunctionTool]:
        """Return the recall tools for `Agent(tools=[...])`."""
        return [self._function(tool) for tool in self.sessions.recall_tools()]

    def _view(self, items: list[Any], instructions: str, agent: Any) -> list[Any]:
        tools = [_schema(tool) for tool in agent.tools if isinstance(tool, FunctionTool)]
        taken = self._histories.take(
            self.session_id, items, format="responses", system=instructions, tools=tools
        )
        return self._histories.view(taken)

    def _function(self, tool: RecallTool) -> FunctionTool:
        async def invoke(_: Any, arguments: str) -> str:
            given = json.loads(arguments or "{}")
            return await asyncio.to_thread(self.sessions.answer, tool.name, given, self.session_id)

        return FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=tool.parameters,
            on_invoke_tool=invoke,
            strict_json_schema=False,
        )


class ResponsesItems:
    """Items of OpenAI's Responses are the session's own messages: they pass as they are."""

    def encode(self, item: Any) -> list[dict[str, Any]]:
        """Return the item."""
        return [item]

    def edit(self, item: Any, parts: Mapping[int, ShownMessage]) -> Any:  # noqa: ARG002
        """Return the item of the view."""
        return parts[0].data

    def make(self, data: dict[str, Any]) -> Any:
        """Return the item of the view."""
        return data


def _schema(tool: FunctionTool) -> dict[str, Any]:
    named = {"type": "function", "name": tool.name, "description": tool.description}
    return {**named, "parameters": tool.params_json_schema}
