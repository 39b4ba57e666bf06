"""Strands with the conversation manager."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("strands", reason="python -m tools.adapters run strands")

from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models.openai import OpenAIModel
from strands.session.file_session_manager import FileSessionManager
from strands.types.exceptions import ContextWindowOverflowException

from ctxgc.adapters.strands import CtxgcConversationManager
from tests.adapters import scenario
from tests.adapters.scenario import ANSWER, LIMIT, MODEL, REQUEST, Logs, strict_server

pytestmark = pytest.mark.filterwarnings("default")


def agent(server: Any, gc: Any, **more: Any) -> Agent:
    is_ours = isinstance(gc, CtxgcConversationManager)
    logs = Logs(gc.sessions if is_ours else None)

    @tool
    def read_log(number: int) -> str:
        """Read a log."""
        return logs.read_log(number)

    model = OpenAIModel(
        client_args={"base_url": server.openai_base_url, "api_key": "any", "max_retries": 0},
        model_id=MODEL,
    )
    recall = gc.tools() if is_ours else []
    return Agent(
        model=model,
        tools=[read_log, *recall],
        conversation_manager=gc,
        callback_handler=None,
        **more,
    )


def test_an_agent_of_sixty_calls_fits_recalls_and_continues_from_its_persistent_messages(
    tmp_path: Any,
) -> None:
    with strict_server() as server:
        plain = agent(server, NullConversationManager())
        scenario.fails_with(ContextWindowOverflowException, lambda: plain(REQUEST))
    options: dict[str, Any] = {"context_limit": LIMIT, "store": f"sqlite:{tmp_path / 'stash.db'}"}

    def files() -> FileSessionManager:
        return FileSessionManager(session_id="one", storage_dir=str(tmp_path / "sessions"))

    with strict_server() as server:
        gc = CtxgcConversationManager(**options)
        made = agent(server, gc, agent_id="reader", session_manager=files())
        assert str(made(REQUEST)).strip() == ANSWER
        scenario.check_run(server)
        assert "log 9 step 3" not in str(made.messages)
        opened = gc.sessions.session().session_id
        gc.sessions.close()
        again = CtxgcConversationManager(**options)
        more = agent(server, again, agent_id="reader", session_manager=files())
        assert str(more("Still there?")).strip() == "Still here."
        assert again.sessions.session().session_id == opened
        assert server.refusals == []
        again.sessions.close()


def test_an_overflow_is_answered_with_a_collection_and_asked_again() -> None:
    with strict_server(recall=False) as server:
        gc = CtxgcConversationManager(context_limit=200_000, store="memory:")
        assert str(agent(server, gc)(REQUEST)).strip() == "done"
        assert {each.breaches[0].rule for each in server.refusals} == {"too_long"}
