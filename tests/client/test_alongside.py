"""A client sends the schemas and the enrichment that its session has now, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc import GCPolicy, InstructionSource
from ctxgc.testing import ScriptedModel, StrictServer, ToolCall, Turn
from tests.client.talk import PROVIDERS, connected
from tests.requirements import requirement


def look(path: str) -> str:
    """Look at a file."""
    return f"{path} is fine"


def deploy(place: str) -> str:
    """Deploy to a place."""
    return f"deployed to {place}"


def sent_tools(body: dict[str, Any]) -> list[str]:
    """Return the names of the tools in a request."""
    return [(tool.get("function") or tool)["name"] for tool in body.get("tools", ())]


@requirement("S2.tools.client", "S2.enrichment.live")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_only_live_schemas_and_enrichment_are_sent(provider: str) -> None:
    call = Turn("", (ToolCall("deploy", {"place": "x"}),))
    model = ScriptedModel([Turn("a"), Turn("b"), call, Turn("c")])
    tools = [look, {"callable": deploy, "policy": GCPolicy.CONDITIONAL}]
    options: dict[str, Any] = {"plugin": "gc_budget", "tools": tools, "recall": False}
    with StrictServer(model) as server, connected(server, provider, **options) as client:
        client.session.enrich("docs", "The docs say hush.")
        client.send_message("Hello.")
        client.session.collect(0)
        client.send_message("Is all well?")
        client.send_message("Then deploy it.")
        locked = client.session.budget.get_child(InstructionSource.PLUGIN, "deploy")
    assert [sent_tools(request.body) for request in server.requests] == [
        ["look", "deploy"], ["look"], ["look", "deploy"], ["look", "deploy"],
    ]  # fmt: skip
    assert [b"hush" in request.raw for request in server.requests] == [True, False, False, False]
    assert locked is not None
    assert locked.gc_policy is GCPolicy.LOCKED
    assert server.refusals == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_enrichment_comes_last_and_is_not_part_of_the_history(provider: str) -> None:
    model = ScriptedModel([Turn("", (ToolCall("look", {"path": "x"}),)), Turn("a")])
    with StrictServer(model) as server, connected(server, provider, tools=[look]) as client:
        client.session.enrich("docs", "The docs say hush.")
        client.send_message("Hello.")
        view = client.session.view()
    assert [request.raw.rindex(b"hush") > request.raw.rindex(b"Hello.") for request in server.requests] == [
        True, True,
    ]  # fmt: skip
    assert "hush" not in str(view)
    assert server.refusals == []
