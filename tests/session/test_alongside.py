"""What is sent alongside the messages: what a collection took out is neither sent nor counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxgc import Session
from ctxgc.budget import GCPolicy, InstructionSource
from ctxgc.errors import PlanError
from tests.requirements import requirement
from tests.session.build import make

PLUGIN = InstructionSource.PLUGIN
CONDITIONAL, LOCKED = GCPolicy.CONDITIONAL, GCPolicy.LOCKED


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": "word " * 50, "input_schema": {"type": "object"}}


TOOLS = [tool("read_file"), tool("deploy"), tool("web_search")]
POLICIES = {"deploy": CONDITIONAL, "web_search": GCPolicy.EPHEMERAL}


def offered(**options: Any) -> Session:
    """Return a session with one core tool and two that may leave."""
    session = make(plugin="gc_budget", preserve_recent_turns=0, **options)
    session.set_tools(TOOLS, POLICIES)
    session.append({"role": "user", "content": "hello"})
    return session


def live(session: Session) -> list[str]:
    """Return the tools to send now; what is counted is what they cost."""
    tools = session.live_tools()
    counter = session.inspect().accounting.counter
    counted = session.usage().by_source["plugin"]
    assert counted == sum(counter.count(json.dumps(each)) for each in tools)
    return [each["name"] for each in tools]


def call(name: str) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": "{}"}
    asked = {"id": "c1", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]


@requirement("S2.tools.live")
def test_a_schema_that_left_is_neither_sent_nor_counted() -> None:
    session = offered()
    assert session.live_tools() == TOOLS
    before = session.usage().total_tokens
    result = session.collect(0)
    assert [(item.source, item.child_key) for item in result.removal_list] == [
        (PLUGIN, "deploy"), (PLUGIN, "web_search"),
    ]  # fmt: skip
    assert live(session) == ["read_file"]
    assert session.usage().total_tokens == before - result.tokens_freed == result.tokens_after


@requirement("S2.tools.live")
def test_a_schema_comes_back_when_a_message_names_its_tool() -> None:
    session = offered()
    session.collect(0)
    session.append({"role": "assistant", "content": "I could redeploy or web_searching."})
    assert live(session) == ["read_file"]
    session.append({"role": "user", "content": "Use `web_search`, please."})
    assert live(session) == ["read_file", "web_search"]
    session.extend(call("deploy"))
    assert live(session) == ["read_file", "deploy", "web_search"]


@requirement("S2.tools.live")
def test_a_schema_that_was_named_stays_until_the_answer_that_is_made_with_it() -> None:
    session = offered()
    session.append({"role": "user", "content": "Now deploy it."})
    session.set_tools(TOOLS, POLICIES)
    session.collect(0)
    assert live(session) == ["read_file", "deploy"]
    session.append({"role": "assistant", "content": "It is done."})
    session.collect(0)
    assert live(session) == ["read_file"]


def test_a_schema_that_was_named_is_no_firmer_in_the_session_that_goes_on(tmp_path: Path) -> None:
    place = f"json:{tmp_path / 'stash.json'}"
    with offered(store=place, session_id="work") as session:
        session.append({"role": "user", "content": "Now deploy it."})
    with make(plugin="gc_budget", store=place, session_id="work", preserve_recent_turns=0) as again:
        again.set_tools(TOOLS, POLICIES)
        again.append({"role": "assistant", "content": "It is done."})
        again.collect(0)
        assert live(again) == ["read_file"]


@requirement("S2.tools.used")
def test_a_call_locks_the_schema_of_a_conditional_tool() -> None:
    session = offered()
    session.extend(call("deploy"))
    deploy = session.budget.get_child(PLUGIN, "deploy")
    assert deploy is not None
    assert deploy.gc_policy is LOCKED
    session.set_tools(TOOLS, POLICIES)
    session.collect(0)
    assert live(session) == ["read_file", "deploy"]


def test_what_schemas_free_pays_for_no_notice_in_the_history() -> None:
    session = offered()
    session.append({"role": "user", "content": "Say it."})
    session.append({"role": "assistant", "content": "It is done."})
    result = session.collect(0)
    assert (result.error, live(session)) == (None, ["read_file"])


def test_what_left_stays_out_when_the_tools_are_given_again() -> None:
    session = offered()
    session.collect(0)
    session.set_tools([*TOOLS, tool("write_file")], POLICIES)
    assert live(session) == ["read_file", "write_file"]
    session.set_tools(TOOLS)
    assert live(session) == ["read_file", "deploy", "web_search"]


def test_what_left_stays_out_in_the_session_that_goes_on(tmp_path: Path) -> None:
    place = f"json:{tmp_path / 'stash.json'}"
    with offered(store=place, session_id="work") as session:
        session.enrich("docs", "found " * 20)
        session.collect(0)
        session.enrich("docs", "found again")
    with make(plugin="gc_budget", store=place, session_id="work") as again:
        again.set_tools(TOOLS, POLICIES)
        assert live(again) == ["read_file"]
        assert (again.enrichment(), again.usage().by_source["enrichment"]) == ({}, 0)


def test_undoing_a_collection_brings_its_schemas_back() -> None:
    session = offered()
    session.append({"role": "assistant", "content": "words " * 300})
    session.append({"role": "user", "content": "go on"})
    session.collect(0)
    assert live(session) == ["read_file"]
    session.undo()
    assert live(session) == ["read_file", "deploy", "web_search"]


def test_undoing_a_collection_that_only_took_out_schemas_brings_them_back(tmp_path: Path) -> None:
    place = f"json:{tmp_path / 'stash.json'}"
    with offered(store=place, session_id="work") as session:
        session.collect(0)
        assert live(session) == ["read_file"]
        session.undo()
        assert live(session) == ["read_file", "deploy", "web_search"]
        with pytest.raises(PlanError, match="no collection to undo"):
            session.undo()
        session.collect(0)
    with make(plugin="gc_budget", store=place, session_id="work") as again:
        again.set_tools(TOOLS, POLICIES)
        again.undo()
        assert live(again) == ["read_file", "deploy", "web_search"]


def test_undoing_a_collection_brings_the_enrichment_back_that_it_cleared() -> None:
    session = offered()
    session.enrich("old", "cleared before")
    session.collect(0)
    session.enrich("docs", "found " * 20)
    session.enrich("memory", "noted " * 10)
    session.enrich("page", "shown " * 10)
    session.collect(0)
    session.enrich("page", "")
    session.enrich("memory", "noted anew")
    session.undo()
    assert session.enrichment() == {"memory": "noted anew", "docs": "found " * 20}
    assert session.usage().by_source["enrichment"] == 22
    session.undo()
    assert session.enrichment().keys() == {"memory", "docs", "old"}


@requirement("S2.enrichment.live")
def test_cleared_enrichment_is_neither_sent_nor_counted() -> None:
    session = offered()
    session.enrich("docs", "found " * 20)
    session.enrich("memory", "noted " * 10)
    assert session.usage().by_source["enrichment"] == 30
    assert session.enrichment() == {"docs": "found " * 20, "memory": "noted " * 10}
    result = session.collect(0)
    assert (InstructionSource.ENRICHMENT, None, 30) in [
        (item.source, item.child_key, item.tokens_freed) for item in result.removal_list
    ]
    assert (session.enrichment(), session.usage().by_source["enrichment"]) == ({}, 0)
    session.enrich("docs", "found anew")
    assert (session.enrichment(), session.usage().by_source["enrichment"]) == (
        {"docs": "found anew"}, 2,
    )  # fmt: skip
    session.enrich("docs", " ")
    session.enrich("docs", "")
    assert (session.enrichment(), session.usage().by_source["enrichment"]) == ({}, 0)
