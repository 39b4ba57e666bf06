"""Microsoft's Agent Framework: a chat middleware that sends the view, and a compaction strategy.

gc = CtxgcChatMiddleware(context_limit=200_000)
agent = Agent(client=client, tools=[*tools, *gc.tools()], middleware=[gc])
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from agent_framework import (
    EXCLUDE_REASON_KEY,
    EXCLUDED_KEY,
    ChatContext,
    ChatMiddleware,
    Content,
    FunctionInvocationContext,
    FunctionTool,
    Message,
    included_messages,
)

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

REASON = "ctxgc"
"""Why a message is excluded, and the mark of those that the strategy put in its place."""


class CtxgcChatMiddleware(ChatMiddleware):
    """Sends the model a view that fits; the history of the agent's session keeps every message.

    Args:
        options: anything that `ctxgc.Session` takes, such as `context_limit`, `store` or `config`.
    """

    def __init__(self, **options: Any) -> None:
        self.sessions = SessionPool(**options)
        self._histories = Histories(self.sessions, AgentFrameworkMessages())

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Ask the model with the view; ask again with a smaller one if it says that it was too long."""
        taken = await asyncio.to_thread(self._take, context)
        while True:
            context.messages = await asyncio.to_thread(self._histories.view, taken)
            try:
                return await call_next()
            except Exception as error:
                if not await asyncio.to_thread(recovered, taken.session, error):
                    raise

    def tools(self) -> list[FunctionTool]:
        """Return the recall tools for `Agent(tools=[...])`."""
        return _recall_tools(self.sessions, _session_id)

    def _take(self, context: ChatContext) -> TakenHistory[Message]:
        options = context.options or {}
        return self._histories.take(
            _session_id(context),
            list(context.messages),
            system=str(options.get("instructions") or ""),
            tools=_schemas(options.get("tools") or ()),
            model=options.get("model"),
        )


class CtxgcCompaction:
    """A `CompactionStrategy`: excludes what left, and puts tombstones and shorter copies in its place.

    The originals stay in the list, marked as excluded with the reason "ctxgc". The framework does not say
    which conversation a list belongs to: without a `session_id`, lists that begin alike belong together.

    Args:
        session_id: the conversation, if the strategy serves one only.
        options: anything that `ctxgc.Session` takes, such as `context_limit`, `store` or `config`.
    """

    def __init__(self, *, session_id: str | None = None, **options: Any) -> None:
        self._key = session_id
        self.sessions = SessionPool(**options)
        self._histories = Histories(self.sessions, AgentFrameworkMessages())
        self._schemas: list[dict[str, Any]] = []

    async def __call__(self, messages: list[Message]) -> bool:
        """Exclude in place; return whether the messages that are left are others than before."""
        before = [*map(_told, included_messages(messages))]
        history = [message for message in messages if _is_original(message)]
        view = await asyncio.to_thread(self._view, history)
        messages[:] = _merged(history, view, [m for m in messages if _left_by_another(m)])
        return [*map(_told, view)] != before

    def tools(self) -> list[FunctionTool]:
        """Return the recall tools for `Agent(tools=[...])`; the tombstones name their calls from now on."""
        found = _recall_tools(self.sessions, lambda _: self._key)
        self._schemas = _schemas(found)
        return found

    def _view(self, history: list[Message]) -> list[Message]:
        return self._histories.view(self._histories.take(self._key, history, tools=self._schemas))


class AgentFrameworkMessages:
    """How the framework's messages are read and written: each tool result may leave by itself."""

    def encode(self, message: Message) -> list[dict[str, Any]]:
        """Return a message as OpenAI chat writes it; one with several results is several messages."""
        results = _results(message)
        if results:
            return [
                {"role": "tool", "tool_call_id": each.call_id or "", "content": _result_text(each)}
                for each in results
            ]
        if message.role == "assistant":
            calls = [
                call_of(each.call_id or "", each.name or "", each.arguments or "{}")
                for each in message.contents
                if each.type == "function_call"
            ]
            return [said_by_assistant(message.text, calls)]
        return [{"role": message.role, "content": message.text}]

    def edit(self, message: Message, parts: Mapping[int, ShownMessage]) -> Message:
        """Return a copy with another text, other arguments, or fewer results."""
        results = _results(message)
        if results:
            return _copy(message, [_result(results[n], each) for n, each in sorted(parts.items())])
        data = parts[0].data
        left = {call["id"]: arguments_of(call) for call in data.get("tool_calls", ())}
        calls = [
            Content.from_function_call(each.call_id, each.name or "", arguments=left[each.call_id])
            for each in message.contents
            if each.type == "function_call" and each.call_id in left
        ]
        said = [Content.from_text(text_of(data))] if text_of(data) else []
        return _copy(message, [*said, *calls])

    def make(self, data: dict[str, Any]) -> Message:
        """Return a message that ctxgc wrote."""
        return Message(data["role"], [text_of(data)], additional_properties={REASON: True})


def _results(message: Message) -> list[Content]:
    return [each for each in message.contents if each.type == "function_result"]


def _result_text(content: Content) -> str:
    return content.result if isinstance(content.result, str) else str(content.result or "")


def _result(content: Content, shown: ShownMessage) -> Content:
    if shown.is_same:
        return content
    return Content.from_function_result(content.call_id or "", result=text_of(shown.data))


def _copy(message: Message, contents: Sequence[Content]) -> Message:
    return Message(
        message.role,
        contents,
        author_name=message.author_name,
        additional_properties={REASON: True},
    )


def _is_original(message: Message) -> bool:
    return not message.additional_properties.get(REASON) and not _left_by_another(message)


def _left_by_another(message: Message) -> bool:
    properties = message.additional_properties
    return bool(properties.get(EXCLUDED_KEY)) and properties.get(EXCLUDE_REASON_KEY) != REASON


def _told(message: Message) -> list[dict[str, Any]]:
    return AgentFrameworkMessages().encode(message)


def _merged(
    history: Sequence[Message], view: Sequence[Message], others: Sequence[Message]
) -> list[Message]:
    """Return the view with what left, marked, at its old place; what others excluded comes first."""
    shown = {id(message) for message in view}
    for message in history:
        message.additional_properties[EXCLUDED_KEY] = id(message) not in shown
        if id(message) not in shown:
            message.additional_properties[EXCLUDE_REASON_KEY] = REASON
    places = {id(message): place for place, message in enumerate(history)}
    merged, next_place = list(others), 0
    for message in view:
        place = places.get(id(message))
        if place is not None:
            merged += history[next_place:place]
            next_place = place + 1
        merged.append(message)
    return [*merged, *history[next_place:]]


def _schemas(tools: Sequence[Any]) -> list[dict[str, Any]]:
    return [tool.to_json_schema_spec() for tool in tools if isinstance(tool, FunctionTool)]


def _recall_tools(
    sessions: SessionPool, key: Callable[[FunctionInvocationContext], str | None]
) -> list[FunctionTool]:
    def function(name: str) -> Callable[..., str]:
        def answer(context: FunctionInvocationContext, **given: Any) -> str:
            return sessions.answer(name, given, key(context))

        return answer

    return [
        FunctionTool(
            name=tool.name,
            description=tool.description,
            func=function(tool.name),
            input_model=tool.parameters,
        )
        for tool in sessions.recall_tools()
    ]


def _session_id(context: ChatContext | FunctionInvocationContext) -> str | None:
    return None if context.session is None else context.session.session_id
