"""A view that the provider refuses as too long is made smaller and sent again."""

from __future__ import annotations

from typing import Any

import httpx2 as httpx
import openai
import pytest

from ctxgc import GCConfig, GCTriggerReason
from ctxgc.client import ChatClient
from ctxgc.client.conversation import overflow_of
from ctxgc.errors import ContextOverflowError
from ctxgc.testing import ScriptedModel, StrictServer, ToolCall
from ctxgc.wire import Overflow
from tests.client.talk import PROVIDERS, connected, roles

LONG = "a line about the weather in the mountains, which is fine. " * 40
# The client believes in a window that is larger than the real one.
BELIEVED = 20_000
REAL = 5_000
EMPTY = {"name": "dump", "parameters": {"type": "object", "properties": {}}}


def texts(client: ChatClient) -> str:
    return "\n".join(segment.text for segment in client.session.segments())


@pytest.mark.parametrize(
    ("provider", "plugin", "streams"),
    [
        ("openai", "gc_truncate", False),
        ("openai", "gc_mark_sweep", True),
        ("responses", "gc_mark_sweep", False),
        ("responses", "gc_truncate", True),
        ("anthropic", "gc_mark_sweep", False),
        ("anthropic", "gc_truncate", True),
    ],
)
def test_a_refused_view_is_collected_and_sent_again(
    provider: str, plugin: str, streams: bool
) -> None:
    model = ScriptedModel(then="yes")
    with (
        StrictServer(model, context_limit=REAL, count_output=False) as server,
        connected(server, provider, context_limit=BELIEVED, plugin=plugin) as client,
    ):
        for number in range(14):
            said = print if streams else None
            assert client.send_message(f"{number}: {LONG}", on_text=said) == "yes"
        history = client.get_gc_history()
        assert all(f"{number}: {LONG}" in texts(client) for number in range(14))
        assert {b.rule for refusal in server.refusals for b in refusal.breaches} == {"too_long"}
    assert history
    assert {result.trigger_reason for result in history} == {GCTriggerReason.CONTEXT_LIMIT}


def test_room_for_the_output_is_made_too() -> None:
    model = ScriptedModel(then="yes")
    with (
        StrictServer(model, context_limit=REAL) as server,
        connected(
            server,
            "anthropic",
            context_limit=REAL,
            max_output_tokens=3_000,
            plugin="gc_truncate",
            config=GCConfig(preserve_recent_turns=1),
        ) as client,
    ):
        for number in range(8):
            assert client.send_message(f"{number}: {LONG}") == "yes"
        assert {b.rule for refusal in server.refusals for b in refusal.breaches} == {"too_long"}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_result_that_alone_is_too_long_is_cut_and_kept_whole_in_the_stash(provider: str) -> None:
    whole = "\n".join(f"row {number}: nothing to see here" for number in range(1_200))
    model = ScriptedModel([ToolCall("dump"), "I have seen the start"], then="yes")

    def dump() -> str:
        return whole

    with (
        StrictServer(model, context_limit=REAL, count_output=False) as server,
        connected(server, provider, context_limit=BELIEVED, tools=[dump]) as client,
    ):
        assert client.send_message("Dump it") == "I have seen the start"
        (seen,) = [
            part.text
            for message in client.session.history
            for part in message.parts
            if part.kind == "tool_result"
        ]
        assert seen.startswith("row 0: ")
        assert seen.endswith("row 1199: nothing to see here")
        assert "the middle was cut out" in seen
        handle = seen.partition('context_recall(handle="')[2].partition('"')[0]
        assert client.session.read(handle) == whole
        assert client.get_gc_history()[-1].plugin_name == "gc_cut_pending"
        assert client.session.gc_history[0].plugin_name == "gc_mark_sweep"
        client.manual_gc()
        assert client.get_gc_history()[-1].plugin_name == "gc_mark_sweep"


def test_the_errors_in_the_middle_of_a_result_that_is_cut_stay() -> None:
    rows = [f"row {number}: nothing to see here" for number in range(1_200)]
    rows[600] = "row 600: ERROR, no space left on the device"

    def dump() -> str:
        return "\n".join(rows)

    with (
        StrictServer([ToolCall("dump"), "ok"], context_limit=REAL, count_output=False) as server,
        connected(server, context_limit=BELIEVED, tools=[dump]) as client,
    ):
        assert client.send_message("Dump it") == "ok"
        seen = str(client.session.view()[-2]["content"]).split("\n")
    marks = [row for row in seen if row not in rows]
    assert rows[600] in seen
    assert [mark.startswith("[ctxgc: the middle was cut out") for mark in marks] == [True, False]
    assert marks[1] == "[...]"


def test_of_several_results_the_largest_is_cut_first() -> None:
    calls = [ToolCall("rows", {"count": 900}, "large"), ToolCall("rows", {"count": 60}, "small")]
    model = ScriptedModel([calls, "ok"])

    def rows(count: int) -> str:
        return "\n".join(f"row {number} of {count}" for number in range(count))

    with (
        StrictServer(model, context_limit=REAL, count_output=False) as server,
        connected(server, context_limit=BELIEVED, tools=[rows], plugin="gc_truncate") as client,
    ):
        assert client.send_message("Rows") == "ok"
        large, small = client.session.view()[2:4]
    assert "was cut out" in large["content"]
    assert small["content"] == rows(60)


def test_of_a_recall_and_another_result_the_other_one_is_cut_however_large_the_recall_is() -> None:
    calls = [ToolCall("again", {"handle": "s-1"}, "back"), ToolCall("rows", {"count": 300}, "new")]
    model = ScriptedModel([calls, "ok"])

    def rows(count: int) -> str:
        return "\n".join(f"row {number} of {count}" for number in range(count))

    def again(handle: str) -> str:
        return handle + "\n" + rows(350)

    with (
        StrictServer(model, context_limit=REAL, count_output=False) as server,
        connected(server, context_limit=BELIEVED, tools=[rows, again]) as client,
    ):
        client.session.append({"role": "user", "content": LONG})
        client.session.append({"role": "assistant", "content": "noted"})
        assert client.send_message("Rows") == "ok"
        results = [m["content"] for m in client.session.view() if m["role"] == "tool"]
    assert results[0] == again("s-1")
    assert "was cut out" in results[1]


def test_a_strategy_of_turns_is_helped_out_within_a_long_turn() -> None:
    def rows(start: int) -> str:
        return "\n".join(f"row {start + number}: a value" for number in range(120))

    model = ScriptedModel([ToolCall("rows", {"start": n * 1_000}) for n in range(12)], then="done")
    with (
        StrictServer(model, context_limit=REAL, count_output=False) as server,
        connected(server, context_limit=BELIEVED, tools=[rows], plugin="gc_truncate") as client,
    ):
        assert client.send_message("Rows") == "done"
        assert "gc_mark_sweep" in {result.plugin_name for result in client.get_gc_history()}
        assert all(rows(n * 1_000) in texts(client) for n in range(12))


def test_who_wants_no_collections_gets_none() -> None:
    whole = "a line\n" * 4_000
    with (
        StrictServer([ToolCall("dump")], context_limit=REAL, count_output=False) as server,
        connected(
            server, context_limit=BELIEVED, tools=[{"schema": EMPTY, "callable": lambda: whole}],
            plugin="gc_none",
        ) as client,
    ):  # fmt: skip
        with pytest.raises(ContextOverflowError, match="gc_none never collects"):
            client.send_message("Dump it")
        assert client.session.view()[-1]["content"] == whole


def test_who_switched_collecting_off_gets_the_refusal_and_the_view_as_it_was() -> None:
    with (
        StrictServer(["never"], context_limit=REAL, count_output=False) as server,
        connected(
            server, context_limit=BELIEVED, config=GCConfig(auto_trigger=False),
        ) as client,
    ):  # fmt: skip
        for number in range(14):
            client.session.append({"role": "user", "content": f"{number}: {LONG}"})
            client.session.append({"role": "assistant", "content": "yes"})
        with pytest.raises(ContextOverflowError, match="auto_trigger=False") as caught:
            client.send_message("Now?")
        assert len(client.session.view()) == 29
        assert (len(server.refusals), server.requests) == (1, [])
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_cannot_fit_is_an_error_that_names_it(provider: str) -> None:
    with (
        StrictServer(["never"], context_limit=REAL, count_output=False) as server,
        connected(server, provider, context_limit=BELIEVED, system="Be good. " * 2_500) as client,
    ):
        with pytest.raises(ContextOverflowError, match="system_prompt") as caught:
            client.send_message("Hello")
        assert roles(client.session.view()) == ["user"]
        assert len(server.refusals) == 1
        assert server.requests == []
    details = caught.value.details
    assert details["size"] > REAL
    assert details["parts"][0]["name"] == "system: system_prompt"
    assert caught.value.__cause__ is not None


def test_it_gives_up_after_three_smaller_views() -> None:
    """A server that refuses whatever it gets is asked four times, with less each time."""
    error = {"error": {"message": "context_length_exceeded", "code": "context_length_exceeded"}}
    sizes: list[int] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        sizes.append(len(request.content))
        return httpx.Response(400, json=error)

    sdk = openai.OpenAI(
        base_url="http://127.0.0.1:1/v1",
        api_key="any",
        max_retries=0,
        http_client=httpx.Client(transport=httpx.MockTransport(refuse)),
    )
    client = ChatClient()
    client.connect(
        model="gpt-4o", sdk=sdk, context_limit=BELIEVED, store="memory:", plugin="gc_truncate",
        config=GCConfig(preserve_recent_turns=0),
    )  # fmt: skip
    for number in range(12):
        client.session.append({"role": "user", "content": f"{number}: {LONG}"}, "openai")
        client.session.append({"role": "assistant", "content": "yes"}, "openai")
    with pytest.raises(ContextOverflowError, match="3 retries were refused"):
        client.send_message("Now?")
    assert len(sizes) == 4
    assert sizes == sorted(set(sizes), reverse=True)
    assert all(f"{number}: {LONG}" in texts(client) for number in range(12))
    client.close()
    sdk.close()


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, {"message": "prompt is too long: 12 tokens > 10 maximum"}, (12, 10)),
        (429, {"message": "prompt is too long: 12 tokens > 10 maximum"}, None),
        (400, {"message": "unknown field"}, None),
        (None, "maximum context length is 10 tokens. your messages resulted in 12", (12, 10)),
        (400, ["context_length_exceeded"], (None, None)),
    ],
)
def test_an_overflow_is_told_from_other_errors(
    status: int | None, body: Any, expected: tuple[int | None, int | None] | None
) -> None:
    error = RuntimeError("refused")
    vars(error).update(status_code=status, body=body)
    wanted = (
        None if expected is None else Overflow(kind="tokens", used=expected[0], limit=expected[1])
    )
    assert overflow_of(error) == wanted
