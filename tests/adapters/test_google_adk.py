"""Google's Agent Development Kit with the plugin."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="python -m tools.adapters run google-adk")

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from ctxgc.adapters.google_adk import CtxgcPlugin, GenaiContents, NumberedContent, _numbered
from ctxgc.adapters.session_pool import ShownMessage
from tests.adapters import scenario
from tests.adapters.scenario import ANSWER, LIMIT, MODEL, REQUEST, Logs, strict_server

pytestmark = pytest.mark.filterwarnings("default")


def ask(server: Any, gc: CtxgcPlugin | None, text: str, file: Any) -> tuple[str, str]:
    """Return the last answer, and all events of the stored session."""
    logs = Logs(gc and gc.sessions)

    def read_log(number: int) -> str:
        """Read a log."""
        return logs.read_log(number)

    async def run() -> tuple[str, str]:
        model = LiteLlm(
            model=f"openai/{MODEL}", api_base=server.openai_base_url, api_key="any", num_retries=0
        )
        agent = LlmAgent(
            name="reader", model=model, instruction="Be brief.",
            tools=[read_log, *(gc.tools() if gc else [])],
        )  # fmt: skip
        service = SqliteSessionService(str(file))
        app = App(name="logs", root_agent=agent, plugins=[gc] if gc else [])
        runner = Runner(app=app, session_service=service)
        where = {"app_name": "logs", "user_id": "ada", "session_id": "one"}
        if await service.get_session(**where) is None:
            await service.create_session(**where)
        said = ""
        async for event in runner.run_async(
            user_id="ada", session_id="one", run_config=RunConfig(max_llm_calls=200),
            new_message=types.Content(role="user", parts=[types.Part(text=text)]),
        ):  # fmt: skip
            if event.error_message:
                raise RuntimeError(event.error_message)
            said = "".join(
                part.text or "" for part in (event.content and event.content.parts) or ()
            )
        stored = await service.get_session(**where)
        await runner.close()
        return said, str(stored.events if stored else "")

    return asyncio.run(run())


def test_an_async_run_of_sixty_calls_fits_recalls_and_continues_from_its_session(
    tmp_path: Any,
) -> None:
    with strict_server() as server:
        scenario.fails_with(Exception, lambda: ask(server, None, REQUEST, tmp_path / "plain.db"))
    options: dict[str, Any] = {"context_limit": LIMIT, "store": f"sqlite:{tmp_path / 'stash.db'}"}
    with strict_server() as server:
        said, stored = ask(server, CtxgcPlugin(**options), REQUEST, tmp_path / "adk.db")
        assert said == ANSWER
        scenario.check_run(server)
        assert "log 9 step 3" in stored
        again = CtxgcPlugin(**options)
        assert ask(server, again, "Still there?", tmp_path / "adk.db")[0] == "Still here."
        assert server.refusals == []


def test_an_overflow_is_answered_with_a_collection_and_asked_again(tmp_path: Any) -> None:
    with strict_server(recall=False) as server:
        gc = CtxgcPlugin(context_limit=200_000, store="memory:")
        assert ask(server, gc, REQUEST, tmp_path / "adk.db")[0] == "done"
        assert {each.breaches[0].rule for each in server.refusals} == {"too_long"}


def test_contents_without_ids_are_paired_by_the_names_of_their_calls() -> None:
    def part(kind: str, name: str, **given: Any) -> Any:
        return {kind: {"name": name, **given}}

    contents = [
        types.Content(role="user", parts=[types.Part(text="Go")]),
        types.Content(role="model", parts=[
            types.Part(text="Both."),
            types.Part(**part("function_call", "a", args={"n": 1})),
            types.Part(**part("function_call", "b", args={})),
        ]),
        types.Content(role="user", parts=[
            types.Part(**part("function_response", "b", response={"result": "B"})),
            types.Part(**part("function_response", "a", response={"error": "no", "code": 3})),
        ]),
    ]  # fmt: skip
    encode = GenaiContents().encode
    messages = [message for numbered in _numbered(contents) for message in encode(numbered)]
    calls = [call["id"] for call in messages[1]["tool_calls"]]
    assert messages[0] == {"role": "user", "content": "Go"}
    assert messages[2:] == [
        {"role": "tool", "tool_call_id": calls[1], "content": "B"},
        {"role": "tool", "tool_call_id": calls[0], "content": '{"error":"no","code":3}'},
    ]


def test_a_part_that_did_not_change_stays_the_same_object() -> None:
    signed = types.Part(
        function_call=types.FunctionCall(name="a", args={"n": 1}), thought_signature=b"seal"
    )
    other = types.Part(function_call=types.FunctionCall(name="b", args={}))
    numbered = NumberedContent(
        types.Content(role="model", parts=[signed, other]), ["call-1", "call-2"]
    )
    data = GenaiContents().encode(numbered)[0]
    shown = ShownMessage({**data, "tool_calls": data["tool_calls"][:1]}, 0, False)
    edited = GenaiContents().edit(numbered, {0: shown})
    assert edited.content.parts == [signed]
    assert (edited.content.parts or [None])[0] is signed
    assert list(edited.ids) == ["call-1"]
