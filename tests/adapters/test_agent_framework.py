"""Microsoft's Agent Framework with the chat middleware and with the compaction strategy."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("agent_framework", reason="python -m tools.adapters run agent-framework")

from agent_framework import (
    EXCLUDE_REASON_KEY,
    Agent,
    AgentSession,
    Content,
    FunctionTool,
    InMemoryHistoryProvider,
    Message,
    apply_compaction,
)
from agent_framework.exceptions import ChatClientException
from agent_framework_openai import OpenAIChatClient, OpenAIChatCompletionClient

from ctxgc.adapters.agent_framework import CtxgcChatMiddleware, CtxgcCompaction
from tests.adapters import scenario
from tests.adapters.scenario import ANSWER, CALLS, LIMIT, MODEL, REQUEST, Logs, strict_server

pytestmark = pytest.mark.filterwarnings("default")


def agent(server: Any, gc: Any, kind: Any = OpenAIChatCompletionClient) -> Agent:
    logs = Logs(gc and gc.sessions)
    own = FunctionTool(
        name="read_log", description="Read a log.", func=logs.read_log,
        input_model=scenario.SCHEMA,
    )  # fmt: skip
    client = kind(
        model=MODEL,
        api_key="any",
        base_url=server.openai_base_url,
        function_invocation_configuration={"max_iterations": 99},
    )
    is_strategy = isinstance(gc, CtxgcCompaction)
    return Agent(
        client=client,
        instructions="Be brief.",
        tools=[own, *(gc.tools() if gc else [])],
        middleware=[gc] if gc and not is_strategy else None,
        compaction_strategy=gc if is_strategy else None,
        context_providers=[InMemoryHistoryProvider()],
        default_options={"store": False},
    )


def ask(made: Agent, text: str, session: AgentSession | None = None) -> str:
    return str(asyncio.run(made.run(text, session=session)).text)


@pytest.mark.parametrize("kind", [OpenAIChatCompletionClient, OpenAIChatClient])
def test_an_async_run_of_sixty_calls_fits_recalls_and_continues_from_its_session(
    kind: Any, tmp_path: Any
) -> None:
    with strict_server() as server:
        scenario.fails_with(ChatClientException, lambda: ask(agent(server, None, kind), REQUEST))
    options: dict[str, Any] = {"context_limit": LIMIT, "store": f"sqlite:{tmp_path / 'stash.db'}"}
    with strict_server() as server:
        gc = CtxgcChatMiddleware(**options)
        session = AgentSession()
        assert ask(agent(server, gc, kind), REQUEST, session) == ANSWER
        scenario.check_run(server)
        saved = json.dumps(session.to_dict())
        assert scenario.log_text(9).splitlines()[3] in saved
        assert gc.sessions.session().session_id == session.session_id
        gc.sessions.close()
        again = CtxgcChatMiddleware(**options)
        restored = AgentSession.from_dict(json.loads(saved))
        assert ask(agent(server, again, kind), "Still there?", restored) == "Still here."
        assert again.sessions.session().session_id == session.session_id
        assert server.refusals == []
        again.sessions.close()


def test_an_overflow_is_answered_with_a_collection_and_asked_again() -> None:
    with strict_server(recall=False) as server:
        gc = CtxgcChatMiddleware(context_limit=200_000, store="memory:")
        assert ask(agent(server, gc), REQUEST) == "done"
        assert {each.breaches[0].rule for each in server.refusals} == {"too_long"}


def test_a_strategy_marks_what_left_and_the_marked_session_continues(tmp_path: Any) -> None:
    options: dict[str, Any] = {"context_limit": LIMIT, "store": f"sqlite:{tmp_path / 'stash.db'}"}
    with strict_server() as server:
        gc = CtxgcCompaction(**options)
        session = AgentSession()
        assert ask(agent(server, gc), REQUEST, session) == ANSWER
        scenario.check_run(server)
        saved = json.dumps(session.to_dict())
        assert '"_exclude_reason": "ctxgc"' in saved
        gc.sessions.close()
        again = CtxgcCompaction(**options)
        restored = AgentSession.from_dict(json.loads(saved))
        assert ask(agent(server, again), "Still there?", restored) == "Still here."
        assert server.refusals == []
        again.sessions.close()


def test_a_strategy_says_whether_it_changed_something_and_leaves_what_others_excluded() -> None:
    gc = CtxgcCompaction(context_limit=LIMIT, store="memory:")
    others = Message("user", ["Old"], additional_properties={"_excluded": True})
    messages = [others, Message("user", [REQUEST])]
    assert asyncio.run(gc(messages)) is False
    assert [message.text for message in messages] == ["Old", REQUEST]
    for number in range(CALLS):
        messages += [
            Message("assistant", [Content.from_function_call(f"c{number}", "read_log", arguments="{}")]),
            Message("tool", [Content.from_function_result(f"c{number}", result=scenario.log_text(number))]),
        ]  # fmt: skip
    originals = list(messages)
    shown = asyncio.run(apply_compaction(messages, strategy=gc))
    assert len(shown) < len(originals)
    kept = {id(message) for message in messages}
    assert all(id(message) in kept for message in originals)
    assert others.additional_properties.get(EXCLUDE_REASON_KEY) is None
    assert asyncio.run(gc(messages)) is False, "twice is once"
