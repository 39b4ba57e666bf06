"""OpenHands with the condenser."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any, Self

import pytest

pytest.importorskip("openhands.sdk", reason="python -m tools.adapters run openhands")

from openhands.sdk import LLM, Agent, Conversation
from openhands.sdk.context.view import View
from openhands.sdk.event import MessageEvent
from openhands.sdk.event.condenser import Condensation
from openhands.sdk.llm import Message, TextContent
from openhands.sdk.tool import (
    Action,
    Observation,
    Tool,
    ToolDefinition,
    ToolExecutor,
    register_tool,
)
from pydantic import SecretStr

from ctxgc.adapters.openhands import CtxgcCondenser, units_of
from tests.adapters import scenario
from tests.adapters.scenario import ANSWER, MODEL, REQUEST, Logs, strict_server

pytestmark = pytest.mark.filterwarnings("default")

LIMIT = 12_000
"""OpenHands' own instructions take a few thousand tokens of it."""


class ReadLogAction(Action):
    number: int


class LogObservation(Observation):
    pass


class ReadLogExecutor(ToolExecutor[ReadLogAction, LogObservation]):
    def __init__(self) -> None:
        self.logs: Logs | None = None

    def __call__(self, action: ReadLogAction, conversation: Any = None) -> LogObservation:
        condenser = conversation.state.agent.condenser
        logs = Logs(condenser.sessions if isinstance(condenser, CtxgcCondenser) else None)
        return LogObservation.from_text(text=logs.read_log(action.number))


class ReadLogTool(ToolDefinition[ReadLogAction, LogObservation]):
    @classmethod
    def create(cls, conv_state: Any = None, **params: Any) -> Sequence[Self]:
        return [
            cls(
                description="Read a log.", action_type=ReadLogAction,
                observation_type=LogObservation, executor=ReadLogExecutor(),
            )
        ]  # fmt: skip


def conversation(server: Any, gc: CtxgcCondenser | None, folder: Any, **more: Any) -> Any:
    register_tool("read_log", ReadLogTool)
    llm = LLM(
        model=f"openai/{MODEL}", base_url=server.openai_base_url, api_key=SecretStr("any"),
        num_retries=0, usage_id="agent", max_input_tokens=1_000_000,
    )  # fmt: skip
    tools = [Tool(name="read_log"), *(gc.tools() if gc else [])]
    agent = Agent(llm=llm, tools=tools, condenser=gc, include_default_tools=[])
    return Conversation(
        agent, workspace=str(folder), persistence_dir=str(folder / "saved"), visualizer=None, **more
    )


def ask(made: Any, text: str) -> str:
    made.send_message(text)
    made.run()
    said = [e for e in made.state.events if isinstance(e, MessageEvent) and e.source == "agent"]
    return "".join(part.text for part in said[-1].llm_message.content)


def check_condensations(events: list[Any]) -> None:
    """Check that each condensation forgot whole units, and put its summary where OpenHands allows one."""
    places = [n for n, event in enumerate(events) if isinstance(event, Condensation)]
    assert places
    for place in places:
        forgotten = events[place].forgotten_event_ids
        for unit in units_of(View.from_events(events[:place])):
            assert len({event.id in forgotten for event in unit.events}) == 1
        after = View.from_events(events[: place + 1])
        assert events[place].summary_offset in after.manipulation_indices


def test_an_agent_of_sixty_calls_fits_recalls_and_continues_from_its_persistent_events(
    tmp_path: Any,
) -> None:
    with strict_server(limit=LIMIT) as server:
        plain = conversation(server, None, tmp_path / "plain")
        scenario.fails_with(Exception, lambda: ask(plain, REQUEST))
    options: dict[str, Any] = {"context_limit": LIMIT, "store": f"sqlite:{tmp_path / 'stash.db'}"}
    name = uuid.uuid4()
    with strict_server(limit=LIMIT) as server:
        gc = CtxgcCondenser(**options)
        made = conversation(server, gc, tmp_path, conversation_id=name)
        assert ask(made, REQUEST) == ANSWER
        assert server.refusals == []
        assert max(request.tokens for request in server.requests) <= LIMIT
        scenario.check_kept(server)
        check_condensations(list(made.state.events))
        made.close()
        again = conversation(server, CtxgcCondenser(**options), tmp_path, conversation_id=name)
        assert ask(again, "Still there?") == "Still here."
        assert server.refusals == []
        assert "log 9 step 3" not in scenario.sent(server.requests[-1])
        again.close()


def test_an_overflow_is_answered_with_a_condensation_and_asked_again(tmp_path: Any) -> None:
    with strict_server(limit=LIMIT, recall=False) as server:
        gc = CtxgcCondenser(context_limit=200_000, store="memory:")
        made = conversation(server, gc, tmp_path)
        assert ask(made, REQUEST) == "done"
        assert {each.breaches[0].rule for each in server.refusals} == {"too_long"}
        check_condensations(list(made.state.events))


def test_an_async_run_does_the_same(tmp_path: Any) -> None:
    with strict_server(limit=LIMIT, recall=False) as server:
        made = conversation(server, CtxgcCondenser(context_limit=LIMIT, store="memory:"), tmp_path)
        made.send_message(REQUEST)
        asyncio.run(made.arun())
        assert server.refusals == []
        check_condensations(list(made.state.events))


def test_a_condenser_is_stored_with_its_options_and_read_again() -> None:
    gc = CtxgcCondenser(context_limit=LIMIT, plugin="gc_truncate", store="memory:")
    gc.tools()
    again = CtxgcCondenser.model_validate_json(gc.model_dump_json())
    assert again == gc


def test_the_units_of_a_view_are_all_its_events_in_order() -> None:
    view = View(events=[
        MessageEvent(
            source="user", llm_message=Message(role="user", content=[TextContent(text=text)])
        )
        for text in ("one", "two")
    ])  # fmt: skip
    assert [event for unit in units_of(view) for event in unit.events] == view.events
