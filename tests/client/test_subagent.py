"""Subagents: their own session, their own collector, their result for the parent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxgc.client import SubagentResult
from ctxgc.client.client import MOST_DEPTH, choose_gc
from ctxgc.errors import ClientError, ConfigError
from ctxgc.stores import open_store
from ctxgc.testing import ScriptedModel, StrictServer, ToolCall
from tests.client.talk import PROVIDERS, connected, read, roles
from tests.requirements import requirement

PROFILE: dict[str, Any] = {
    "name": "my-subagent",
    "description": "A specialized subagent",
    "plugins": ["read"],
    "gc": {
        "type": "hybrid",
        "threshold_percent": 50.0,
        "preserve_recent_turns": 2,
        "notify_on_gc": True,
        "summarize_middle_turns": 10,
    },
}


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(then="done")


@pytest.fixture
def server(model: ScriptedModel) -> Iterator[StrictServer]:
    with StrictServer(model) as running:
        yield running


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for profiles in an empty project."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / ".jaato" / "profiles"
    folder.mkdir(parents=True)
    return folder


def write(folder: Path, profile: dict[str, Any]) -> None:
    (folder / f"{profile['name']}.json").write_text(json.dumps(profile), encoding="utf-8")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_subagent_works_beside_its_parent(
    server: StrictServer, model: ScriptedModel, provider: str
) -> None:
    model.extend(["Hello.", ToolCall("read", {"path": "a"}), "The child has read it.", "Fine."])
    with connected(server, provider, tools=[read], system="Be brief.") as parent:
        parent.send_message("Hello")
        result = parent.spawn_subagent(task="Read a")
        assert isinstance(result, SubagentResult)
        assert (result, result.rounds, result.depth) == ("The child has read it.", 2, 1)
        assert (result.profile, result.gc_history) == (None, [])
        assert result.session_id != parent.session.session_id
        assert len(parent.session.history) == 2
        assert parent.send_message("Go on") == "Fine."
    assert b"Hello" not in server.requests[1].raw
    assert b"Be brief." in server.requests[1].raw
    assert server.refusals == []


@requirement("S3.profiles.spawn", "S3.profiles.gc-field")
def test_a_profile_gives_a_subagent_its_collector_tools_model_and_instructions(
    server: StrictServer, profiles: Path
) -> None:
    write(profiles, {**PROFILE, "model": "gpt-4o-mini", "system_instructions": "You are small."})
    with connected(server, tools=[read, roles], context_limit=3_000) as parent:
        result = parent.spawn_subagent("word " * 1_800, profile="my-subagent")
    assert result.profile == "my-subagent"
    assert {each.plugin_name for each in result.gc_history} == {"gc_hybrid"}
    body = server.requests[-1].body
    assert body["model"] == "gpt-4o-mini"
    assert body["messages"][0] == {"role": "system", "content": "You are small."}
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert names == ["read", "context_recall", "context_search"]


@requirement("S3.inline.spawn", "S3.inline.low-threshold")
def test_an_inline_threshold_of_five_percent_triggers_early(
    server: StrictServer, model: ScriptedModel
) -> None:
    calls = [ToolCall("read", {"path": "a", "lines": 40}) for _ in range(6)]
    model.extend([*calls, "stressed"])
    gc = {"type": "truncate", "threshold_percent": 5.0, "preserve_recent_turns": 3}
    with connected(server, tools=[read]) as parent:
        result = parent.spawn_subagent(task="Stress test GC behavior", inline_config={"gc": gc})
        assert result == "stressed"
        assert result.gc_history
        assert {each.plugin_name for each in result.gc_history} == {"gc_truncate"}
        assert parent.get_gc_history() == []
    assert server.refusals == []


@requirement(
    "S3.inline.type-default",
    "S3.inline.threshold-percent-default",
    "S3.inline.preserve-recent-turns-default",
    "S3.inline.notify-on-gc-default",
    "S3.inline.summarize-middle-turns-default",
    "S3.inline.max-turns-default",
    "S3.inline.plugin-config-default",
)
def test_an_inline_collector_has_the_defaults_of_s3() -> None:
    found = choose_gc(None, {"gc": {}})
    assert found is not None
    plugin, config = found
    assert plugin.name == "gc_truncate"
    assert (
        config.threshold_percent,
        config.preserve_recent_turns,
        config.notify_on_gc,
        config.summarize_middle_turns,
        config.max_turns,
        dict(config.plugin_config),
    ) == (80.0, 5, True, None, None, {})


def test_inline_configuration_wins_over_the_profile(profiles: Path, server: StrictServer) -> None:
    write(profiles, {"name": "p", "gc": {"type": "budget"}})
    inline = {"gc": {"type": "truncate", "threshold_percent": 5.0}}
    with connected(server, context_limit=3_000) as parent:
        result = parent.spawn_subagent("word " * 1_000, "p", inline)
    assert {each.plugin_name for each in result.gc_history} == {"gc_truncate"}


@pytest.mark.parametrize("scheme", ["json", "sqlite"])
def test_parent_and_child_keep_their_sessions_in_one_store(
    server: StrictServer, tmp_path: Path, scheme: str
) -> None:
    url = f"{scheme}:{tmp_path / 'store'}"
    with connected(server, store=url) as parent:
        parent.send_message("Hello")
        child = parent.spawn_subagent("Help").session_id
        parent.send_message("Go on")
        own = parent.session.session_id
    store = open_store(url)
    assert {info.session_id for info in store.sessions()} == {own, child}
    store.close()


def test_a_shared_store_survives_a_subagent(server: StrictServer, tmp_path: Path) -> None:
    store = open_store(f"sqlite:{tmp_path / 'store'}")
    with connected(server, store=store) as parent:
        parent.spawn_subagent("Help")
        assert parent.send_message("Go on") == "done"
    store.close()


def test_the_model_may_start_subagents_but_not_without_end(
    server: StrictServer, model: ScriptedModel
) -> None:
    spawn = ToolCall("spawn_subagent", {"task": "Do it for me"})
    model.extend([spawn] * (MOST_DEPTH + 1))
    with connected(server) as parent:
        parent.add_tool(parent.spawn_subagent)
        assert parent.send_message("Do it") == "done"
        assert parent.session.history[2].text() == ""
        assert parent.session.history[2].parts[0].text == "done"
    refused = [b"cannot start another one" in request.raw for request in server.requests]
    assert refused.count(True) == 1
    assert refused.index(True) == MOST_DEPTH + 1
    assert server.refusals == []


def test_wrong_profiles_and_inline_configuration_are_refused_by_name(
    server: StrictServer, profiles: Path
) -> None:
    write(profiles, {**PROFILE, "plugins": ["raed"]})
    with connected(server, tools=[read]) as parent:
        with pytest.raises(ConfigError, match=r'unknown profile "my-subagnt".*"my-subagent"'):
            parent.spawn_subagent("x", profile="my-subagnt")
        with pytest.raises(ConfigError, match=r'unknown tool .*"raed".*"read"'):
            parent.spawn_subagent("x", profile="my-subagent")
        with pytest.raises(ConfigError, match='did you mean "threshold_percent"'):
            parent.spawn_subagent("x", inline_config={"gc": {"treshold_percent": 5}})
    assert server.requests == []


def test_a_client_that_is_not_connected_has_no_subagents(server: StrictServer) -> None:
    client = connected(server)
    client.close()
    with pytest.raises(ClientError, match="not connected"):
        client.spawn_subagent("x")
