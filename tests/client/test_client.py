"""ChatClient against a strict server, over the official SDKs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from ctxgc import GCConfig, GCTriggerReason, Session, load_gc_plugin
from ctxgc.client import ChatClient, Reply
from ctxgc.errors import ClientError, ConfigError, InputError
from ctxgc.stores import open_store
from ctxgc.testing import ScriptedModel, StrictServer, ToolCall, Turn
from tests.client.talk import LIMIT, MODEL, PROVIDERS, connected, read, roles
from tests.requirements import requirement

LONG = "a line about the weather in the mountains, which is fine. " * 60


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(then="yes")


@pytest.fixture
def server(model: ScriptedModel) -> Iterator[StrictServer]:
    with StrictServer(model, context_limit=LIMIT, count_output=False) as running:
        yield running
        assert running.script_errors == []


@requirement("S3.client.connect")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_message_is_answered(
    server: StrictServer, model: ScriptedModel, provider: str, streams: bool
) -> None:
    model.extend(["Hello, you.", "Still here."])
    said: list[str] = []
    with connected(server, provider, system="Be brief.") as client:
        reply = client.send_message("Hello", on_text=said.append if streams else None)
        again = client.send_message("Are you there?")
        view = roles(client.session.view())
    assert (reply, again) == ("Hello, you.", "Still here.")
    assert "".join(said) == ("Hello, you." if streams else "")
    assert view == ["user", "assistant", "user", "assistant"]
    assert server.refusals == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reply_is_a_text_that_knows_how_it_came_about(
    server: StrictServer, model: ScriptedModel, provider: str
) -> None:
    model.extend([ToolCall("read", {"path": "a"}), "one two three"])
    with connected(server, provider, tools=[read]) as client:
        reply = client.send_message("Go")
    assert isinstance(reply, str)
    assert (reply.text, type(reply.text)) == ("one two three", str)
    assert (reply.rounds, reply.collections) == (2, [])
    assert reply.stop in ("stop", "completed", "end_turn")
    assert reply.input_tokens == server.requests[-1].tokens
    assert reply.output_tokens > 3
    assert reply.raw.to_dict()["model"] == MODEL


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_parallel_calls_are_run_and_answered_in_order(
    server: StrictServer, model: ScriptedModel, provider: str, streams: bool
) -> None:
    calls = (
        ToolCall("read", {"path": "a.py", "lines": 1}),
        ToolCall("read", {"path": "b.py", "lines": 2}),
    )
    model.extend([Turn(text="I look.", thinking="Both.", tool_calls=calls), "done"])
    with connected(server, provider, tools=[read], tool_workers=2) as client:
        reply = client.send_message("Look", on_text=print if streams else None)
        results = [
            part.text
            for message in client.session.history
            for part in message.parts
            if part.kind == "tool_result"
        ]
    assert reply == "done"
    assert results == ["a.py:0", "b.py:0\nb.py:1"]
    assert server.refusals == []


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_thinking_goes_back_as_it_was_signed(
    server: StrictServer, model: ScriptedModel, streams: bool
) -> None:
    model.extend(
        [Turn(thinking="hm", tool_calls=(ToolCall("read", {"path": "a"}),)), Turn("ok", (), "aha")]
    )
    thinking = {"type": "enabled", "budget_tokens": 1024}
    with connected(server, "anthropic", tools=[read], options={"thinking": thinking}) as client:
        client.send_message("Think", on_text=print if streams else None)
        client.send_message("Again")
    blocks = [b for m in server.requests[-1].messages for b in m["content"] if isinstance(b, dict)]
    assert [b["thinking"] for b in blocks if b["type"] == "thinking"] == ["hm", "aha"]
    assert all(b["signature"] for b in blocks if b["type"] == "thinking")
    assert server.refusals == []


def test_reasoning_goes_back_encrypted_when_nothing_is_stored(
    server: StrictServer, model: ScriptedModel
) -> None:
    model.extend([Turn("", (ToolCall("read", {"path": "a"}),), "hm"), "ok"])
    options = {"store": False, "include": ["reasoning.encrypted_content"]}
    with connected(server, "responses", tools=[read], options=options) as client:
        assert client.send_message("Think") == "ok"
    item = next(i for i in server.requests[-1].messages if i.get("type") == "reasoning")
    assert item["encrypted_content"].startswith("gAAA")
    assert server.refusals == []


@requirement("S3.client.set-gc-plugin", "S3.client.manual-gc", "S3.client.history")
def test_the_sample_of_s3_runs_nearly_as_written(
    server: StrictServer, model: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    client = ChatClient()
    client.connect(
        None, server.openai_base_url, MODEL, api_key="any", context_limit=LIMIT, store="memory:"
    )
    gc_plugin = load_gc_plugin("gc_truncate", {"preserve_recent_turns": 1})
    client.set_gc_plugin(gc_plugin, GCConfig(threshold_percent=75.0, check_before_send=True))
    response = client.send_message("Hello")
    for _ in range(12):
        client.send_message(LONG)
    result = client.manual_gc()
    print(f"Freed {result.tokens_freed} tokens")
    for each in client.get_gc_history():
        print(f"{each.plugin_name}: {each.items_collected} items collected")
    client.close()
    assert response == "yes"
    assert result.success
    assert result.trigger_reason is GCTriggerReason.MANUAL
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Freed {result.tokens_freed} tokens"
    assert len(lines) > 1
    assert all(line.startswith("gc_truncate: ") for line in lines[1:])
    assert server.refusals == []


@requirement("S3.client.automatic")
@pytest.mark.parametrize(
    ("provider", "plugin"),
    [
        ("openai", "gc_truncate"),
        ("openai", "gc_mark_sweep"),
        ("responses", "gc_mark_sweep"),
        ("anthropic", "gc_mark_sweep"),
        ("anthropic", "gc_budget"),
    ],
)
def test_collections_happen_by_themselves_and_no_request_is_refused(
    server: StrictServer, provider: str, plugin: str
) -> None:
    with connected(server, provider, plugin=plugin) as client:
        replies = [client.send_message(f"{number}: {LONG}") for number in range(16)]
        history = client.get_gc_history()
    assert replies == ["yes"] * 16
    assert history
    assert {result.plugin_name for result in history} == {plugin}
    assert [c for reply in replies for c in reply.collections] == history
    assert server.refusals == []
    assert all(request.tokens <= LIMIT for request in server.requests)


def test_the_callback_is_told_once_per_message_before_anything_is_collected(
    server: StrictServer,
) -> None:
    told: list[tuple[float, float, int]] = []
    config = GCConfig(threshold_percent=40.0, preserve_recent_turns=1)
    with connected(server, config=config, plugin="gc_truncate") as client:

        def on_threshold(percent: float, threshold: float) -> None:
            told.append((percent, threshold, len(client.get_gc_history())))

        sent = 0
        while not client.get_gc_history():
            sent += 1
            client.send_message(LONG, on_gc_threshold=on_threshold)
            assert sent < 20
    assert [threshold for _, threshold, _ in told] == [40.0] * len(told)
    assert told[0][0] >= 40.0
    assert told[0][2] == 0
    assert len(told) <= sent


def test_without_auto_trigger_the_callback_still_tells(server: StrictServer) -> None:
    told: list[float] = []
    config = GCConfig(threshold_percent=20.0, auto_trigger=False)
    with connected(server, config=config) as client:
        for _ in range(4):
            client.send_message(LONG, on_gc_threshold=lambda percent, _: told.append(percent))
        assert client.get_gc_history() == []
    assert len(told) >= 1


def test_the_usage_that_the_provider_reports_reaches_the_session(
    server: StrictServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(Session, "report_usage", lambda _, tokens: seen.append(tokens))
    for provider in PROVIDERS:
        with connected(server, provider) as client:
            client.send_message("Hello", on_text=print)
    assert seen == [request.tokens for request in server.requests]


@pytest.mark.parametrize(
    ("status", "openai_error", "anthropic_error"),
    [
        (429, openai.RateLimitError, anthropic.RateLimitError),
        (500, openai.InternalServerError, anthropic.InternalServerError),
    ],
)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_other_errors_come_out_as_the_sdk_raises_them(
    server: StrictServer,
    provider: str,
    status: int,
    openai_error: type[Exception],
    anthropic_error: type[Exception],
) -> None:
    server.fail_next(status)
    with connected(server, provider) as client:
        expected = anthropic_error if provider == "anthropic" else openai_error
        with pytest.raises(expected):
            client.send_message("Hello")
        assert client.send_message("Hello") == "yes"
        assert roles(client.session.view()) == ["user", "assistant"]


def test_a_failed_request_is_resumed_without_saying_more(
    server: StrictServer, model: ScriptedModel
) -> None:
    model.extend([ToolCall("read", {"path": "a"})])
    with connected(server, tools=[read]) as client:

        def break_next(path: str) -> str:
            server.fail_next(500)
            return path

        client.add_tool(break_next)
        model.extend([ToolCall("break_next", {"path": "b"}), "back again"])
        with pytest.raises(openai.InternalServerError):
            client.send_message("Go")
        assert client.resume() == "back again"
        assert roles(client.session.view()) == [
            "user", "assistant", "tool", "assistant", "tool", "assistant",
        ]  # fmt: skip


def test_a_broken_stream_leaves_the_history_as_it_was(
    server: StrictServer, model: ScriptedModel
) -> None:
    model.extend(["a rather long answer that breaks in the middle", "whole"])
    with connected(server) as client:
        server.cut_next(after_events=3)
        with pytest.raises(Exception, match=r"(?i)connection|peer|chunk"):
            client.send_message("Hello", on_text=print)
        assert client.send_message("Hello", on_text=print) == "whole"
        assert roles(client.session.view()) == ["user", "assistant"]


def test_a_session_is_continued_by_its_id(server: StrictServer, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'sessions.db'}"
    with connected(server, store=store) as client:
        client.send_message("First")
        session_id = client.session.session_id
    with connected(server, store=store, session_id=session_id) as client:
        client.send_message("Second")
    said = [message["content"] for message in server.requests[-1].messages]
    assert said == ["First", "yes", "Second"]


def test_calls_that_a_dead_process_left_open_are_closed(
    server: StrictServer, tmp_path: Path
) -> None:
    store = open_store(f"sqlite:{tmp_path / 'sessions.db'}")
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    dead = Session(LIMIT, store=store)
    dead.append({"role": "user", "content": "Go"}, "openai")
    dead.append({"role": "assistant", "tool_calls": [call]}, "openai")
    dead.flush()
    with connected(server, store=store, session_id=dead.session_id) as client:
        assert client.send_message("Are you there?") == "yes"
    assert roles(server.requests[-1].messages) == ["user", "assistant", "tool", "user"]
    assert "interrupted" in server.requests[-1].messages[2]["content"]
    store.close()


def test_a_store_that_was_handed_in_stays_open(server: StrictServer) -> None:
    store = open_store("memory:")
    with connected(server, store=store) as client:
        client.send_message("Hello")
        session_id = client.session.session_id
    assert store.revision(session_id) > 0


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"model": None}, InputError, "no model is given"),
        ({"provider": "antropic"}, ConfigError, 'did you mean "anthropic"'),
        ({"contxt_limit": 9}, ConfigError, 'did you mean "context_limit"'),
        (
            {"context_limit": None, "model": "mine"},
            InputError,
            "context_limit is missing: the window of 'mine' is not known",
        ),
        ({"options": {"messages": []}}, InputError, '"messages" is set by the client itself'),
        ({"location": "http://127.0.0.1:1"}, InputError, "location and base_url"),
        ({"max_rounds": 0}, InputError, "max_rounds must be at least 1, got 0"),
        ({"tool_workers": 0}, InputError, "tool_workers must be at least 1, got 0"),
        ({"sdk_options": {"timout": 1}}, InputError, "timout"),
        ({"provider": "anthropic", "project": "p"}, InputError, "project"),
        ({"tools": [read, read]}, InputError, 'there is already a tool "read"'),
    ],
)
def test_wrong_settings_are_refused_by_name(
    server: StrictServer, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        connected(server, **options)


def test_the_provider_follows_from_the_name_of_the_model(server: StrictServer) -> None:
    with connected(server, provider=None, model="claude-sonnet-4", base_url=server.base_url) as one:
        one.send_message("Hello")
    with connected(server, provider=None, model="gpt-4o") as other:
        other.send_message("Hello")
    assert [request.format for request in server.requests] == ["anthropic", "openai"]


def test_a_client_that_is_not_connected_says_so(server: StrictServer) -> None:
    client = ChatClient()
    for act in (client.manual_gc, client.get_gc_history, lambda: client.send_message("x")):
        with pytest.raises(ClientError, match="not connected"):
            act()
    with connected(server) as fresh, pytest.raises(ClientError, match="nothing to resume"):
        fresh.resume()


def test_a_blank_message_is_refused(server: StrictServer) -> None:
    with connected(server) as client, pytest.raises(InputError, match="blank"):
        client.send_message("  ")


def test_a_missing_sdk_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "anthropic", None)
    with pytest.raises(ClientError, match=r"pip install 'ctxgc\[anthropic\]'"):
        ChatClient().connect(model="claude-sonnet-4", context_limit=LIMIT, store="memory:")


def test_connecting_again_starts_another_session(server: StrictServer) -> None:
    client = connected(server)
    first = client.session.session_id
    client.connect(
        model=MODEL, base_url=server.openai_base_url, api_key="any", context_limit=LIMIT,
        store="memory:",
    )  # fmt: skip
    assert client.session.session_id != first
    assert isinstance(client.send_message("Hello"), Reply)
    client.close()
    client.close()
