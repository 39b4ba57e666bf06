"""Tools: how they are described, run, and answered for."""

from __future__ import annotations

import threading
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from ctxgc.client import Tool
from ctxgc.client.answer import Call, mark_truncated, read_arguments
from ctxgc.client.tools import Toolbox, ToolOutcome, interrupted, make_tool
from ctxgc.errors import ClientError, InputError
from ctxgc.testing import ScriptedModel, StrictServer, ToolCall, Turn
from tests.client.talk import PROVIDERS, connected, read, roles


def search(
    query: str,
    limit: Annotated[int, Meta(description="at most")] = 5,
    *,
    mode: Literal["exact", "fuzzy"] = "exact",
    tags: list[str] | None = None,
) -> str:
    """Search the notes."""
    return f"{query} {limit} {mode} {tags}"


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
}


def outcome(tool: Any, arguments: dict[str, Any]) -> ToolOutcome:
    made = make_tool(tool)
    return Toolbox([made]).run(Call(call_id="c", name=made.name, arguments=arguments))


def test_a_function_describes_itself() -> None:
    tool = make_tool(search)
    assert (tool.name, tool.description) == ("search", "Search the notes.")
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "description": "at most", "default": 5},
            "mode": {"enum": ["exact", "fuzzy"], "default": "exact"},
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA,
        {"type": "function", "function": {"name": "read", "parameters": SCHEMA}},
        {"type": "function", "name": "read", "parameters": SCHEMA},
        {"name": "read", "input_schema": SCHEMA},
    ],
    ids=["parameters", "chat", "responses", "anthropic"],
)
def test_a_schema_may_be_given_in_any_shape(schema: dict[str, Any]) -> None:
    tool = make_tool({"schema": schema, "callable": read})
    assert (tool.name, tool.parameters) == ("read", SCHEMA)
    assert tool.run({"path": "a", "lines": 1}) == "a:0"


def test_arguments_come_in_the_types_of_the_function() -> None:
    assert outcome(search, {"query": "x", "limit": "7"}).text == "x 7 exact None"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "missing required field `query`"),
        ({"query": 1.5, "limit": []}, "Expected"),
        ({"query": "x", "lmit": 3}, "unknown field `lmit`"),
        ({"query": "x", "mode": "odd"}, "Invalid enum value 'odd'"),
    ],
)
def test_wrong_arguments_are_told_to_the_model(arguments: dict[str, Any], says: str) -> None:
    answered = outcome(search, arguments)
    assert answered.is_error
    assert says in answered.text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("  ", "(no output)"),
        (None, "(no output)"),
        ({"ä": [1, None]}, '{"ä": [1, null]}'),
        (3, "3"),
    ],
)
def test_what_a_tool_returns_becomes_text(value: object, text: str) -> None:
    def tool() -> object:
        return value

    assert outcome(tool, {}) == ToolOutcome(call_id="c", text=text)


def test_a_tool_that_raises_gives_an_error_without_secrets() -> None:
    def leak() -> str:
        raise RuntimeError("no access with sk-abcdefghijklmnop")

    assert outcome(leak, {}) == ToolOutcome(
        call_id="c", text="RuntimeError: no access with ***", is_error=True
    )


async def later() -> str:
    return ""


def hidden(*names: str) -> str:
    return str(names)


def odd(value: threading.Lock) -> str:  # type: ignore[valid-type]
    return str(value)


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        (3, "a tool must be a function, got int"),
        (later, "coroutine function"),
        (lambda: None, "cannot be called '<lambda>'"),
        (hidden, "not a named parameter"),
        (odd, "cannot be described"),
        ({"schema": SCHEMA}, "cannot be read from the keys"),
        ({"schema": {"type": "string"}, "callable": read}, "there are no parameters in it"),
    ],
)
def test_what_is_no_tool_is_refused(tool: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make_tool(tool)


def test_a_made_tool_stays_as_it_is() -> None:
    tool = make_tool(read)
    assert make_tool(tool) is tool


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', ('{"a": 1}', {"a": 1}, False)),
        ("", ("{}", {}, False)),
        ("{broken", ('{"invalid_arguments": "{broken"}', {}, True)),
        ("[1]", ('{"invalid_arguments": "[1]"}', {}, True)),
    ],
)
def test_arguments_are_always_json_in_the_history(
    text: str, expected: tuple[str, dict[str, Any], bool]
) -> None:
    kept, arguments, problem = read_arguments(text)
    assert (kept, arguments, problem is not None) == expected


def test_only_the_last_call_of_a_cut_answer_is_distrusted() -> None:
    calls = [Call(call_id="a", name="x"), Call(call_id="b", name="x")]
    first, last = mark_truncated(calls)
    assert (first.problem, last.problem is not None) == (None, True)
    assert mark_truncated([]) == []


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_bad_arguments_reach_neither_the_tool_nor_the_provider(streams: bool) -> None:
    model = ScriptedModel([ToolCall("read", "{broken"), "I see"], then="yes")
    with StrictServer(model) as server, connected(server, tools=[read]) as client:
        assert client.send_message("Go", on_text=print if streams else None) == "I see"
        call, result = server.requests[-1].messages[1:3]
    arguments = call["tool_calls"][0]["function"]["arguments"]
    assert arguments == '{"invalid_arguments": "{broken"}'
    assert result["content"].startswith("Error: the arguments are not a JSON object")
    assert server.refusals == []


@pytest.mark.parametrize(("provider", "stop"), [("openai", "length"), ("anthropic", "max_tokens")])
def test_a_call_that_was_cut_off_is_not_run(provider: str, stop: str) -> None:
    ran: list[str] = []

    def write(path: str) -> None:
        ran.append(path)

    turn = Turn(tool_calls=(ToolCall("write", {"path": "half"}),), stop=stop)
    with (
        StrictServer([turn, "sorry"]) as server,
        connected(server, provider, tools=[write]) as client,
    ):
        assert client.send_message("Write") == "sorry"
    assert ran == []
    assert b"was cut off before this call was complete" in server.requests[-1].raw


@pytest.mark.parametrize("provider", PROVIDERS)
def test_errors_of_tools_are_marked_for_the_model(provider: str) -> None:
    def fail() -> str:
        raise FileNotFoundError("no such file")

    model = ScriptedModel([[ToolCall("fail"), ToolCall("nothing")], "I see"])
    with StrictServer(model) as server, connected(server, provider, tools=[fail]) as client:
        assert client.send_message("Go") == "I see"
        results = [
            part
            for message in client.session.history
            for part in message.parts
            if part.kind == "tool_result"
        ]
    start = "" if provider == "anthropic" else "Error: "
    assert [part.text for part in results] == [
        f"{start}FileNotFoundError: no such file",
        f'{start}there is no tool "nothing"; there are: fail, context_recall, context_search',
    ]
    assert [part.is_error for part in results] == [provider == "anthropic"] * 2
    assert server.refusals == []


def test_the_rounds_are_limited_and_can_be_resumed() -> None:
    model = ScriptedModel([ToolCall("read", {"path": "a"})] * 3, then="at last")
    with StrictServer(model) as server, connected(server, tools=[read], max_rounds=2) as client:
        with pytest.raises(ClientError, match="still calls tools after 2 rounds"):
            client.send_message("Go")
        reply = client.resume()
    assert (reply, reply.rounds) == ("at last", 2)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_interrupted_tool_leaves_a_history_that_goes_on(provider: str) -> None:
    def stop() -> str:
        raise KeyboardInterrupt

    calls = [ToolCall("read", {"path": "a", "lines": 1}), ToolCall("stop"), ToolCall("read")]
    model = ScriptedModel([calls, "going on"])
    with StrictServer(model) as server, connected(server, provider, tools=[read, stop]) as client:
        with pytest.raises(KeyboardInterrupt):
            client.send_message("Go")
        assert client.send_message("Go on") == "going on"
        results = [
            part.text.removeprefix("Error: ")
            for message in client.session.history
            for part in message.parts
            if part.kind == "tool_result"
        ]
    assert results == ["a:0", interrupted("x").text, interrupted("x").text]
    assert server.refusals == []


def test_calls_run_at_the_same_time_when_there_are_workers() -> None:
    meeting = threading.Barrier(2, timeout=60)

    def meet() -> str:
        meeting.wait()
        return "met"

    tools = Toolbox([make_tool(meet)], workers=2)
    outcomes: list[ToolOutcome] = []
    tools.run_all([Call(call_id=name, name="meet") for name in ("a", "b")], outcomes)
    assert outcomes == [ToolOutcome(call_id=name, text="met") for name in ("a", "b")]


def test_a_tool_that_is_added_later_is_offered_from_then_on() -> None:
    with StrictServer(["one", "two"]) as server, connected(server, recall=False) as client:
        client.send_message("Hello")
        before = client.session.usage().by_source["plugin"]
        client.add_tool(read, name="read_file", description="Read.")
        client.send_message("Hello again")
        assert client.session.usage().by_source["plugin"] > before
        names = [
            [tool["function"]["name"] for tool in request.body.get("tools", ())]
            for request in server.requests
        ]
        with pytest.raises(InputError, match='there is already a tool "read_file"'):
            client.add_tool(read, name="read_file")
    assert names == [[], ["read_file"]]
    assert roles(server.requests[-1].messages) == ["user", "assistant", "user"]


def test_a_tool_may_not_take_the_name_of_a_recall_tool() -> None:
    taken = Tool(name="context_recall", description="", parameters=SCHEMA, function=read)
    with StrictServer() as server, pytest.raises(InputError, match="context_recall"):
        connected(server, tools=[taken])
