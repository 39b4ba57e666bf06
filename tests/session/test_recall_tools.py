"""The tools with which a model recalls: their schemas, the answers to their calls, and life without them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxgc import GCConfig, Session
from ctxgc.core import FORMATS, Format
from ctxgc.errors import InputError
from ctxgc.session import RECALL_CALL
from ctxgc.stores import MemoryStore
from tests.collector.agent import LONG, Agent, Json, drive
from tests.fakes import Clock, QuarterCounter

ROWS = "\n".join(f"row {number}: sensor_{number} says {number * 37 % 101}" for number in range(400))

WRONG = "Error: the arguments of {} are wrong: "
RECALL = 'Call context_recall(handle="...", lines=[first, last], pattern="text")'
SEARCH = 'Call context_search(query="words", limit=5)'


def _session(limit: int = 200_000, **options: Any) -> Session:
    usual = {
        "store": "memory:", "counter": QuarterCounter(), "clock": Clock(), "prices": "anthropic-5m",
        "config": GCConfig(auto_recall=False, recent_messages=2),
    }  # fmt: skip
    return Session(limit, **{**usual, **options})


def _measured(**options: Any) -> Session:
    """Return a session that has moved one result out."""
    session = _session(4_000, config=GCConfig(recent_messages=1), **options)
    call = {"id": "c", "type": "function", "function": {"name": "measure", "arguments": "{}"}}
    session.extend(
        [
            {"role": "user", "content": "Measure"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": ROWS},
            {"role": "assistant", "content": "Measured."},
            {"role": "user", "content": "Thanks"},
        ],
        "openai",
    )
    session.collect(500)
    return session


def _call(form: Format, name: str, arguments: Any) -> Json:
    """Return a call of a tool as a format writes it."""
    if form == "anthropic":
        return {"type": "tool_use", "id": "x", "name": name, "input": arguments}
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    if form == "responses":
        item = {"type": "function_call", "id": "fc_1", "call_id": "x"}
        return {**item, "name": name, "arguments": given}
    return {"id": "x", "type": "function", "function": {"name": name, "arguments": given}}


def _reply(form: Format, text: str, *, is_error: bool = False) -> Json:
    """Return the answer that a format wants."""
    if form == "anthropic":
        block = {"type": "tool_result", "tool_use_id": "x", "content": text}
        return {"role": "user", "content": [{**block, "is_error": True} if is_error else block]}
    if form == "responses":
        return {"type": "function_call_output", "call_id": "x", "output": text}
    return {"role": "tool", "tool_call_id": "x", "content": text}


def test_the_tools_are_listed_as_each_format_lists_tools() -> None:
    session = _session()
    listed = {form: session.tools(form) for form in FORMATS}
    names = ["context_recall", "context_search"]
    assert [tool["name"] for tool in listed["anthropic"]] == names
    assert [tool["name"] for tool in listed["responses"]] == names
    assert [tool["function"]["name"] for tool in listed["openai"]] == names
    schemas = [tool["input_schema"] for tool in listed["anthropic"]]
    assert [tool["parameters"] for tool in listed["responses"]] == schemas
    assert [tool["function"]["parameters"] for tool in listed["openai"]] == schemas
    assert [schema["required"] for schema in schemas] == [["handle"], ["query"]]


def test_without_a_format_they_are_those_of_the_session() -> None:
    session = _session()
    session.append({"role": "user", "content": "hi"}, format="anthropic")
    assert session.tools() == session.tools("anthropic")
    with pytest.raises(InputError, match="cannot be 'gemini'"):
        session.tools("gemini")  # type: ignore[arg-type]  # what a caller may pass


@pytest.mark.parametrize("form", FORMATS)
def test_a_call_is_answered_in_its_own_format(form: Format) -> None:
    session = _measured(recall_call=RECALL_CALL)
    handle = session.search("sensor_7")[0].handle
    asked = _call(form, "context_recall", {"handle": handle, "lines": [8, 9]})
    shown = "row 7: sensor_7 says 57\nrow 8: sensor_8 says 94"
    assert session.answer(asked) == _reply(form, shown)
    found = session.answer(_call(form, "context_search", {"query": "sensor_7", "limit": 1}))
    assert handle in json.dumps(found)


class _SdkCall:
    """The object of an SDK."""

    def __init__(self, data: Json) -> None:
        self._data = data

    def model_dump(self) -> Json:
        """Return it as a dict."""
        return self._data


def test_the_object_of_an_sdk_is_a_call_too() -> None:
    session = _measured()
    call = _call("openai", "context_search", {"query": "sensor_7"})
    assert session.answer(_SdkCall(call)) == session.answer(call) is not None


@pytest.mark.parametrize(
    "call",
    [
        _call("openai", "bash", {"command": "ls"}),
        _call("anthropic", "bash", {"command": "ls"}),
        _call("responses", "bash", {"command": "ls"}),
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"id": "x", "type": "custom", "custom": {"name": "context_recall", "input": "h"}},
    ],
)
def test_a_call_of_another_tool_has_no_answer(call: Json) -> None:
    assert _session().answer(call) is None


@pytest.mark.parametrize("call", ["context_recall", None, {"id": "x"}, {"name": "context_recall"}])
def test_what_is_not_a_call_is_refused(call: Any) -> None:
    with pytest.raises(InputError, match="a tool call"):
        _session().answer(call)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        (
            "context_recall", {},
            f"{WRONG.format('context_recall')}Object missing required field `handle`. {RECALL}",
        ),
        (
            "context_search", {"query": "a", "most": 3},
            f"{WRONG.format('context_search')}Object contains unknown field `most`. {SEARCH}",
        ),
        (
            "context_recall", {"handle": "h-none", "lines": [1]},
            "Error: lines must be two numbers, got [1] ([first, last], from 1)",
        ),
        ("context_search", {"query": "unheard"}, "nothing that was moved out matches"),
    ],
)  # fmt: skip
def test_what_a_model_got_wrong_is_told_to_it(
    form: Format, name: str, arguments: Json, says: str
) -> None:
    answer = _measured().answer(_call(form, name, arguments))
    assert answer == _reply(form, says, is_error=says.startswith("Error"))


@pytest.mark.parametrize("arguments", ["{not json", "[1]", '"text"', "3"])
def test_arguments_that_are_not_an_object_are_told_to_it(arguments: str) -> None:
    answer = _session().answer(_call("openai", "context_recall", arguments))
    assert answer is not None
    assert answer["content"].startswith("Error: the arguments of context_recall are wrong: ")
    assert answer["content"].endswith(RECALL)


def test_an_unknown_handle_is_answered_with_what_to_do() -> None:
    answer = _session().answer(_call("openai", "context_recall", {"handle": "h-none"}))
    assert answer is not None
    assert answer["content"].startswith("Error: no segment with the handle")


def test_an_answer_teaches_the_session_what_was_missed() -> None:
    session = _measured()
    handle = session.search("sensor_7")[0].handle
    assert not session.inspect().state.ghosts.any_left(0)
    session.answer(_call("openai", "context_recall", {"handle": handle}))
    assert session.inspect().state.ghosts.any_left(0)


# -- Life with and without them


def test_nothing_leaves_for_the_price_before_the_tools_are_taken() -> None:
    session = _session()
    views = drive(session, LONG)
    assert session.gc_history == []
    assert len(views[-1]) == len(session.history)
    taken = _session()
    taken.tools()
    assert "context_recall(handle=" in str(drive(taken, LONG)[-1])


def test_a_session_that_goes_on_remembers_that_they_were_taken() -> None:
    store, clock = MemoryStore(), Clock()
    with _session(store=store, session_id="s", clock=clock) as session:
        session.tools()
        session.append(Agent().begin()[0])
    with _session(store=store, session_id="s", clock=clock) as again:
        drive(again, LONG)
        assert again.gc_history
    with _session(store=store, session_id="s", clock=clock, recall_call="") as never:
        assert never.inspect().options.recall_call is None


def _lines(view: list[Json]) -> int:
    shown = [line for m in view if m["role"] == "tool" for line in m["content"].split("\n")]
    return sum(not line.startswith("[") for line in shown)


def test_where_room_must_be_made_without_them_no_call_is_named_and_more_lines_stay() -> None:
    """The factor is one constant: with it at 1, fewer lines stay."""
    bare = _session(12_000)
    view = drive(bare, LONG)[-1]
    assert bare.gc_history
    assert "[ctxgc: " in str(view)
    assert "context_recall" not in str(view)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctxgc.collector.presets.WITHOUT_RECALL", 1.0)
        fewer = drive(_session(12_000), LONG)[-1]
    assert _lines(view) > _lines(fewer)


def test_a_session_that_goes_on_names_the_call_of_the_host_that_it_has_now() -> None:
    store = MemoryStore()
    _measured(store=store, session_id="s", recall_call="fetch({handle})").flush()

    def result(**said: Any) -> str:
        shown = _session(4_000, store=store, session_id="s", **said).view()
        return next(str(m["content"]) for m in shown if m["role"] == "tool").partition("\n")[0]

    before = result()
    assert before.startswith("[ctxgc: ")
    assert "; fetch(h-" in before
    without = before.partition("; fetch(")[0] + "]"
    assert result(recall_call="") == without
    handle = before.partition("fetch(")[2].removesuffix(")]")
    assert result(recall_call="open {handle}!") == f"{without[:-1]}; open {handle}!]"
    # Trying did not store anything: the last host that worked with it still counts.
    assert result() == before
