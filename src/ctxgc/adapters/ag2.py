"""AG2: a middleware that sends the view, and a compaction strategy whose result is the stream's history.

gc = CtxgcViews(context_limit=200_000)
agent = Agent("reader", config=config, tools=[*tools, *gc.tools()], middleware=[gc])
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from ag2.annotations import Context
from ag2.events import (
    BaseEvent,
    DataInput,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ProviderReplay,
    TextInput,
    ToolCallEvent,
    ToolCallsEvent,
    ToolResult,
    ToolResultEvent,
    ToolResultsEvent,
)
from ag2.knowledge import EventLogWriter, KnowledgeStore
from ag2.middleware import BaseMiddleware
from ag2.middleware.base import LLMCall
from ag2.tools import tool
from ag2.tools.final import FunctionTool

from ctxgc.adapters.session_pool import (
    Histories,
    SessionPool,
    ShownMessage,
    TakenHistory,
    call_of,
    recovered,
    said_by_assistant,
    text_of,
)


class EventGroup(msgspec.Struct, frozen=True, eq=False):
    """An event that the model is sent, with what the stream recorded on the way to it."""

    event: BaseEvent
    before: Sequence[BaseEvent] = ()


class Ag2Histories:
    """The streams of an agent: what both adapters share.

    Args:
        persists: whether the view becomes the history of the stream.
        options: anything that `ctxgc.Session` takes, such as `context_limit`, `store` or `config`.
    """

    def __init__(self, *, persists: bool, **options: Any) -> None:
        self.sessions = SessionPool(**options)
        self._histories = Histories(self.sessions, Ag2Events(), persists=persists)
        self._schemas: list[dict[str, Any]] = []

    def take(self, events: Iterable[BaseEvent], context: Context) -> TakenHistory[EventGroup]:
        """Bring the events of a stream into the session of the same id."""
        return self._histories.take(
            str(context.stream.id),
            [group for group in _groups(events) if group.event is not _END],
            system="\n".join(context.prompt),
            tools=self._schemas,
        )

    def view(self, taken: TakenHistory[EventGroup], events: Sequence[BaseEvent]) -> list[BaseEvent]:
        """Return the events of the view, and what the stream recorded after the last of them."""
        groups = self._histories.view(taken)
        shown = [event for group in groups for event in (*group.before, group.event)]
        rest = next((g.before for g in _groups(events) if g.event is _END), ())
        return [*shown, *rest]

    def tools(self) -> list[FunctionTool]:
        """Return the recall tools for `Agent(tools=[...])`; the tombstones name their calls from now on."""
        found = self.sessions.recall_tools()
        self._schemas = [each.schema("openai") for each in found]

        def context_recall(
            context: Context,
            handle: str,
            lines: list[int] | None = None,
            pattern: str | None = None,
        ) -> str:
            given = {"handle": handle, "lines": lines, "pattern": pattern}
            return self.sessions.answer("context_recall", given, str(context.stream.id))

        def context_search(context: Context, query: str, limit: int | None = None) -> str:
            given = {"query": query, "limit": limit}
            return self.sessions.answer("context_search", given, str(context.stream.id))

        said = {each.name: each.description for each in found}
        return [
            tool(function, name=function.__name__, description=said[function.__name__])
            for function in (context_recall, context_search)
        ]


class CtxgcViews(Ag2Histories):
    """A middleware: sends the model a view that fits; the stream keeps every event.

    Args:
        options: anything that `ctxgc.Session` takes, such as `context_limit`, `store` or `config`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(persists=False, **options)

    def __call__(self, event: BaseEvent, context: Context) -> BaseMiddleware:
        """Return the middleware of one turn, as AG2 asks for it."""
        return _ViewMiddleware(event, context, self)


class _ViewMiddleware(BaseMiddleware):
    def __init__(self, event: BaseEvent, context: Context, views: CtxgcViews) -> None:
        super().__init__(event, context)
        self._views = views

    async def on_llm_call(
        self, call_next: LLMCall, events: Sequence[BaseEvent], context: Context
    ) -> ModelResponse:
        """Ask the model with the view; ask again with a smaller one if it says that it was too long."""
        taken = await asyncio.to_thread(self._views.take, events, context)
        while True:
            view = await asyncio.to_thread(self._views.view, taken, events)
            try:
                return await call_next(view, context)
            except Exception as error:
                if not await asyncio.to_thread(recovered, taken.session, error):
                    raise


class CtxgcCompact(Ag2Histories):
    """A `CompactStrategy`: the view becomes the stream's history; the originals are in the session's store.

    Args:
        target_tokens: what a compaction shrinks the history to; without it, what the configuration says.
        options: anything that `ctxgc.Session` takes, such as `context_limit`, `store` or `config`.
    """

    def __init__(self, *, target_tokens: int | None = None, **options: Any) -> None:
        super().__init__(persists=True, **options)
        self._target = target_tokens

    async def compact(
        self, events: list[BaseEvent], context: Context, store: KnowledgeStore | None
    ) -> list[BaseEvent]:
        """Return a shorter history; what left it is in AG2's knowledge store too, if there is one."""
        compacted = await asyncio.to_thread(self._compacted, events, context)
        kept = {id(event) for event in compacted}
        dropped = [event for event in events if id(event) not in kept]
        if store and dropped:
            await EventLogWriter(store).persist_dropped(context.stream.id, dropped)
        return compacted

    def _compacted(self, events: list[BaseEvent], context: Context) -> list[BaseEvent]:
        taken = self.take(events, context)
        taken.session.collect(self._target)
        return self.view(taken, events)


class Ag2Events:
    """How AG2's events are read and written: each tool result may leave by itself."""

    def encode(self, group: EventGroup) -> list[dict[str, Any]]:
        """Return an event as OpenAI chat writes it; one with several results is several messages."""
        event = group.event
        if isinstance(event, ToolResultsEvent):
            return [
                {
                    "role": "tool",
                    "tool_call_id": each.parent_id,
                    "content": _text(each.result.parts),
                }
                for each in event.results
            ]
        if isinstance(event, ModelResponse):
            calls = [call_of(c.id, c.name, c.arguments or "{}") for c in event.tool_calls.calls]
            return [said_by_assistant(event.content or "", calls)]
        return [{"role": "user", "content": _text(getattr(event, "parts", ()))}]

    def edit(self, group: EventGroup, parts: Mapping[int, ShownMessage]) -> EventGroup:
        """Return a copy with another text, other arguments, or fewer results."""
        event = group.event
        if isinstance(event, ToolResultsEvent):
            same = [event.results[n].parent_id for n, each in parts.items() if each.is_same]
            results = [_result(event.results[n], each) for n, each in sorted(parts.items())]
            return EventGroup(ToolResultsEvent(results), _without(group.before, {*same}))
        data = parts[0].data
        if not isinstance(event, ModelResponse):
            return self.make(data)
        left = {call["id"]: call["function"]["arguments"] for call in data.get("tool_calls", ())}
        calls = [
            ToolCallEvent(call.name, id=call.id, arguments=left[call.id])
            for call in event.tool_calls.calls
            if call.id in left
        ]
        said = ModelMessage(text_of(data)) if text_of(data) else None
        edited = ModelResponse(said, tool_calls=ToolCallsEvent(calls), usage=event.usage)
        whole = [each for each in group.before if not isinstance(each, ProviderReplay)]
        return EventGroup(edited, _without(whole, {*left}))

    def make(self, data: dict[str, Any]) -> EventGroup:
        """Return an event that ctxgc wrote."""
        if data["role"] == "assistant":
            return EventGroup(ModelResponse(ModelMessage(text_of(data))))
        return EventGroup(ModelRequest([TextInput(text_of(data))]))


_END = BaseEvent()


def _groups(events: Iterable[BaseEvent]) -> Iterator[EventGroup]:
    """Yield each event that the model is sent with those before it; the last group has the stream's end."""
    before: list[BaseEvent] = []
    for event in events:
        if isinstance(event, (ModelRequest, ModelResponse, ToolResultsEvent)):
            yield EventGroup(event, before)
            before = []
        else:
            before.append(event)
    yield EventGroup(_END, before)


def _without(before: Iterable[BaseEvent], left: set[str]) -> list[BaseEvent]:
    """Return what the stream recorded, without calls and results that are not in the view as they were."""
    return [event for event in before if _ids(event) <= left]


def _ids(event: BaseEvent) -> set[str]:
    if isinstance(event, ToolCallsEvent):
        return {call.id for call in event.calls}
    if isinstance(event, ToolResultEvent):
        return {event.parent_id}
    return {event.id} if isinstance(event, ToolCallEvent) else set()


def _result(result: ToolResultEvent, shown: ShownMessage) -> ToolResultEvent:
    if shown.is_same:
        return result
    return ToolResultEvent(
        parent_id=result.parent_id, name=result.name, result=ToolResult(text_of(shown.data))
    )


def _text(inputs: Iterable[Any]) -> str:
    return "\n".join(
        each.content
        if isinstance(each, TextInput)
        else json.dumps(each.data, default=str)
        if isinstance(each, DataInput)
        else type(each).__name__
        for each in inputs
    )
