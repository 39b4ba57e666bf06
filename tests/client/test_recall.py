"""What was moved out comes back through two tools."""

from __future__ import annotations

import pytest

from ctxgc import GCConfig, Session
from ctxgc.client.answer import Call
from ctxgc.client.tools import Toolbox, recall_tools
from ctxgc.testing import RecordedRequest, ScriptedModel, StrictServer, ToolCall
from tests.client.talk import PROVIDERS, connected

ROWS = "\n".join(f"row {number}: sensor value {number * 37 % 101}" for number in range(400))


def measure(day: int) -> str:
    """Return the measurements of a day."""
    return f"day {day}\n{ROWS}"


def recall_the_first(request: RecordedRequest) -> ToolCall:
    """Do what the first note in the view says."""
    handle = request.raw.decode().partition('context_recall(handle=\\"')[2].partition("\\")[0]
    return ToolCall("context_recall", {"handle": handle, "lines": [1, 3]})


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_model_gets_back_what_a_note_names(provider: str) -> None:
    model = ScriptedModel([ToolCall("measure", {"day": day}) for day in range(20)])
    model.extend([recall_the_first, "got it"])
    config = GCConfig(recent_messages=2, recent_user_messages=1)
    with (
        StrictServer(model, count_output=False) as server,
        connected(server, provider, tools=[measure], config=config, context_limit=5_000) as client,
    ):
        assert client.send_message("Measure") == "got it"
        last = client.session.history[-2].parts[-1]
    assert last.kind == "tool_result"
    assert last.text.splitlines()[1:] == ROWS.splitlines()[:2]
    assert last.text.startswith("day ")
    assert server.refusals == []


def test_the_tools_are_offered_from_the_first_request_so_that_the_prefix_stays() -> None:
    model = ScriptedModel([ToolCall("measure", {"day": day}) for day in range(20)], then="done")
    config = GCConfig(recent_messages=2, recent_user_messages=1)
    with (
        StrictServer(model) as server,
        connected(server, tools=[measure], config=config, context_limit=5_000) as client,
    ):
        client.send_message("Measure")
        assert client.get_gc_history()
        assert client.session.usage().by_source["plugin"] > 0
    assert len({str(request.body["tools"]) for request in server.requests}) == 1
    names = [tool["function"]["name"] for tool in server.requests[0].body["tools"]]
    assert names == ["measure", "context_recall", "context_search"]


def test_without_recall_no_note_names_a_handle() -> None:
    model = ScriptedModel([ToolCall("measure", {"day": day}) for day in range(20)], then="done")
    config = GCConfig(recent_messages=2, recent_user_messages=1)
    with (
        StrictServer(model) as server,
        connected(
            server, tools=[measure], config=config, context_limit=5_000, recall=False
        ) as client,
    ):
        client.send_message("Measure")
        assert client.get_gc_history()
    raw = server.requests[-1].raw
    assert b"[ctxgc: " in raw
    assert b"context_recall" not in raw


@pytest.fixture
def box() -> Toolbox:
    """The tools of a session that has moved one result out."""
    session = Session(4_000, store="memory:", config=GCConfig(recent_messages=1))
    call = {"id": "c", "type": "function", "function": {"name": "measure", "arguments": "{}"}}
    session.extend(
        [
            {"role": "user", "content": "Measure"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": measure(1)},
            {"role": "assistant", "content": "Measured."},
            {"role": "user", "content": "Thanks"},
        ],
        "openai",
    )
    session.collect(500)
    return Toolbox(recall_tools(session))


def ask(box: Toolbox, name: str, **arguments: object) -> str:
    return box.run(Call(call_id="c", name=name, arguments=arguments)).text


def test_a_search_returns_handles_that_recall_answers_to(box: Toolbox) -> None:
    found = ask(box, "context_search", query="sensor value", limit=3)
    handle = found.split()[0]
    assert "tokens): day 1 row 0: sensor value 0 row 1" in found
    assert ask(box, "context_recall", handle=handle).startswith("day 1\nrow 0")
    assert ask(box, "context_recall", handle=handle, lines=[2, 3]) == (
        "row 0: sensor value 0\nrow 1: sensor value 37"
    )
    assert "row 100: " in ask(box, "context_recall", handle=handle, pattern="ROW 100:")


def test_a_recall_never_fills_the_window_by_itself(box: Toolbox) -> None:
    handle = ask(box, "context_search", query="sensor").split()[0]
    text = ask(box, "context_recall", handle=handle)
    assert len(text) < 4_200
    shown = text.splitlines()
    assert shown[-1] == (
        f"[ctxgc: cut after line {len(shown) - 1}; "
        f"ask for later lines with lines=[{len(shown)}, ...]]"
    )
    later = ask(box, "context_recall", handle=handle, lines=[11, 100_000]).splitlines()
    assert later[-1].startswith(f"[ctxgc: cut after line {len(later) - 1 + 10}; ")


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("context_recall", {"handle": "h-none"}, "UnknownHandleError: no segment with the handle"),
        (
            "context_recall",
            {"handle": "h-none", "lines": [1]},
            "lines must be two numbers, got [1]",
        ),
        ("context_recall", {}, "missing"),
        ("context_search", {"query": "unheard"}, "nothing that was moved out matches"),
    ],
)
def test_a_wrong_question_gets_an_answer_too(
    box: Toolbox, name: str, arguments: dict[str, object], says: str
) -> None:
    assert says in ask(box, name, **arguments)
