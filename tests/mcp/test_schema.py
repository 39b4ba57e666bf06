"""What the tools look like to an agent, and what that costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ctxgc.mcp import schema_costs
from ctxgc.mcp.server import INSTRUCTIONS, listed
from ctxgc.mcp.tools import TOOLS, tools_of

MINIMAL = ["context_usage", "context_search", "context_recall"]
STANDARD = [
    *MINIMAL, "context_ingest", "context_gc_analyze", "context_gc_prune", "context_gc_pin",
    "context_gc_unpin", "context_task",
]  # fmt: skip
FULL = [
    *STANDARD, "context_gc_configure", "context_import", "context_compress", "context_expand",
    "context_checkpoint",
]  # fmt: skip


def _schemas(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _schemas(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _schemas(inner)


def test_each_profile_has_its_tools_in_a_fixed_order() -> None:
    assert [tool.name for tool in tools_of("minimal")] == MINIMAL
    assert [tool.name for tool in tools_of("standard")] == STANDARD
    assert [tool.name for tool in tools_of("full")] == FULL


def test_the_schemas_stay_small() -> None:
    costs = schema_costs()
    assert costs["minimal"] <= 400
    assert costs["standard"] <= 1_200
    assert costs["full"] <= 1_750


def test_descriptions_are_one_short_line() -> None:
    assert max(len(tool.description) for tool in TOOLS) <= 100
    assert [tool.name for tool in TOOLS if "\n" in tool.description] == []
    assert len(INSTRUCTIONS) <= 400


def test_schemas_are_such_as_every_client_takes() -> None:
    for tool in map(listed, TOOLS):
        text = json.dumps(tool.input_schema)
        assert tool.input_schema["type"] == "object"
        assert "$ref" not in text
        assert "anyOf" not in text
        arrays = [s for s in _schemas(tool.input_schema) if s.get("type") == "array"]
        assert [s for s in arrays if "items" not in s] == []


def test_only_the_text_of_a_segment_and_a_few_more_are_required() -> None:
    required = {t.name: s for t in TOOLS if (s := listed(t).input_schema.get("required"))}
    assert required == {
        "context_search": ["query"],
        "context_recall": ["handle"],
        "context_import": ["path"],
        "context_expand": ["segment_id"],
    }
    ingest = next(tool for tool in TOOLS if tool.name == "context_ingest")
    segment = listed(ingest).input_schema["properties"]["segments"]["items"]
    assert segment["required"] == ["text"]


def test_the_tools_say_what_they_do_to_the_context() -> None:
    hints = {tool.name: listed(tool).annotations for tool in TOOLS}
    reading = [name for name, hint in hints.items() if hint and hint.read_only_hint]
    destroying = [name for name, hint in hints.items() if hint and hint.destructive_hint]
    assert (reading, destroying) == (["context_usage", "context_search"], ["context_gc_prune"])
