"""OpenHands: a condenser that forgets what is dead first, and the recall tools.

gc = CtxgcCondenser(context_limit=200_000)
agent = Agent(llm=llm, tools=[*tools, *gc.tools()], condenser=gc)
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

import msgspec
from openhands.sdk.context.condenser import CondenserBase
from openhands.sdk.context.view import View
from openhands.sdk.event import LLMConvertibleEvent
from openhands.sdk.event.condenser import Condensation
from openhands.sdk.llm import LLM, ImageContent, Message, TextContent
from openhands.sdk.tool import (
    Action,
    Observation,
    Tool,
    ToolDefinition,
    ToolExecutor,
    register_tool,
)
from pydantic import PrivateAttr

from ctxgc.adapters.session_pool import (
    Histories,
    SessionPool,
    ShownMessage,
    TakenHistory,
    call_of,
    said_by_assistant,
    text_of,
)
from ctxgc.session import RECALL_TOOLS


class EventUnit(msgspec.Struct, frozen=True, eq=False):
    """Events between two manipulation indices: OpenHands forgets all of them or none."""

    events: Sequence[LLMConvertibleEvent]


class CtxgcCondenser(CondenserBase):
    """Forgets units of events when a collection is due; the summary has the tombstones of what left.

    The fields are options of `ctxgc.Session`: the ones that can be stored with a conversation.
    """

    context_limit: int | None = None
    model: str | None = None
    store: str | None = None
    plugin: str | None = None
    with_tools: bool = False
    _histories: Histories[EventUnit] | None = PrivateAttr(default=None)

    @property
    def sessions(self) -> SessionPool:
        """The sessions of the conversations, to pin, search and look at."""
        return self._opened().sessions

    def tools(self) -> list[Tool]:
        """Return the recall tools for `Agent(tools=[...])`; the tombstones name their calls from now on."""
        self.with_tools = True
        register_tool("context_recall", ContextRecallTool)
        register_tool("context_search", ContextSearchTool)
        return [Tool(name="context_recall"), Tool(name="context_search")]

    def handles_condensation_requests(self) -> bool:
        """Say yes: after an overflow OpenHands asks for a condensation, and sends the request again."""
        return True

    def condense(self, view: View, agent_llm: LLM | None = None) -> View | Condensation:  # noqa: ARG002
        """Return the view as it is, or what to forget of it.

        Raises:
            ContextOverflowError: what must stay does not fit the window.
        """
        if not view.events:
            return view
        units = units_of(view)
        taken = self._opened().take(
            view.events[0].id,
            units,
            tools=[tool.schema("openai") for tool in RECALL_TOOLS] if self.with_tools else (),
        )
        if view.unhandled_condensation_request:
            taken.session.collect(max(taken.session.usage().total_tokens // 2, 1))
        return _condensation(taken) or view

    async def acondense(self, view: View, agent_llm: LLM | None = None) -> View | Condensation:
        """Do the same without making the event loop wait."""
        return await asyncio.to_thread(self.condense, view, agent_llm)

    def _opened(self) -> Histories[EventUnit]:
        if self._histories is None:
            said = self.model_dump(include={"context_limit", "model", "store", "plugin"})
            given = {name: value for name, value in said.items() if value is not None}
            self._histories = Histories(SessionPool(**given), EventUnits())
        return self._histories


class EventUnits:
    """How events are read; OpenHands cannot change them, so nothing is ever written."""

    def encode(self, unit: EventUnit) -> list[dict[str, Any]]:
        """Return the events of a unit as OpenAI chat writes them."""
        return [*map(_chat, LLMConvertibleEvent.events_to_messages(list(unit.events)))]

    def edit(self, unit: EventUnit, parts: Mapping[int, ShownMessage]) -> EventUnit:  # noqa: ARG002
        """Return the unit: a part of it cannot leave."""
        return unit

    def make(self, data: dict[str, Any]) -> EventUnit:  # noqa: ARG002
        """Return a unit without events: what ctxgc wrote goes into the summary."""
        return EventUnit(())


def units_of(view: View) -> list[EventUnit]:
    """Return the events of a view, cut at its manipulation indices."""
    places = sorted({0, *view.manipulation_indices, len(view.events)})
    return [EventUnit(view.events[first:last]) for first, last in pairwise(places) if first < last]


def _condensation(taken: TakenHistory[EventUnit]) -> Condensation | None:
    """Return what the session no longer shows whole as events to forget; None if it shows all."""
    shown = taken.shown()
    same = {each.place for each in shown if each.is_same}
    whole = [True] * len(taken.items)
    for place, owner in enumerate(taken.origins):
        whole[owner] &= place in same
    if all(whole):
        return None
    left = [unit for unit, is_whole in zip(taken.items, whole, strict=True) if not is_whole]
    said = (text_of(each.data) for each in shown if not _is_kept(each, taken, whole))
    offset = sum(len(unit.events) for unit in taken.items[: whole.index(False)])
    return Condensation(
        forgotten_event_ids={event.id for unit in left for event in unit.events},
        summary="\n".join(text for text in said if text),
        summary_offset=offset,
        llm_response_id=f"ctxgc-{uuid.uuid4().hex}",
    )


def _is_kept(shown: ShownMessage, taken: TakenHistory[EventUnit], whole: Sequence[bool]) -> bool:
    return shown.place is not None and whole[taken.origins[shown.place]]


def _chat(message: Message) -> dict[str, Any]:
    text = "\n".join(
        each.text if isinstance(each, TextContent) else type(each).__name__
        for each in message.content
        if isinstance(each, TextContent | ImageContent)
    )
    if message.role == "assistant":
        calls = [call_of(c.id, c.name, c.arguments) for c in message.tool_calls or ()]
        return said_by_assistant(text, calls)
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": text}
    return {"role": message.role, "content": text}


# -- The recall tools


class ContextRecallAction(Action):
    """What `context_recall` is called with."""

    handle: str
    lines: list[int] | None = None
    pattern: str | None = None


class ContextSearchAction(Action):
    """What `context_search` is called with."""

    query: str
    limit: int | None = None


class ContextAnswer(Observation):
    """What a recall tool says."""


class RecallExecutor(ToolExecutor[Any, ContextAnswer]):
    """Answers for the condenser of the conversation that calls."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, action: Any, conversation: Any = None) -> ContextAnswer:
        """Return what the tool says."""
        condenser = getattr(conversation and conversation.state.agent, "condenser", None)
        said = "This conversation has no CtxgcCondenser."
        if isinstance(condenser, CtxgcCondenser):
            given = {name: getattr(action, name) for name in type(action).model_fields}
            given.pop("kind", None)
            said = condenser.sessions.answer(self._name, given)
        answer: ContextAnswer = ContextAnswer.from_text(text=said)
        return answer


class _RecallTool(ToolDefinition[Any, ContextAnswer]):
    @classmethod
    def create(cls, conv_state: Any = None, **params: Any) -> Sequence[Self]:  # noqa: ARG003
        """Return the tool, as OpenHands asks for it."""
        said = next(tool.description for tool in RECALL_TOOLS if tool.name == cls.name)
        is_recall = cls.name == "context_recall"
        return [
            cls(
                description=said,
                action_type=ContextRecallAction if is_recall else ContextSearchAction,
                observation_type=ContextAnswer,
                executor=RecallExecutor(cls.name),
            )
        ]


class ContextRecallTool(_RecallTool):
    """`context_recall` for an agent."""


class ContextSearchTool(_RecallTool):
    """`context_search` for an agent."""
