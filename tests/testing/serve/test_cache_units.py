"""A request is counted once per unit, in the order in which the provider reads it."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.testing.serve.cache import MEDIA_TOKENS, UNIT_OVERHEAD, units_of
from tests.testing.builders import text, user

TOOL: dict[str, Any] = {"name": "read", "input_schema": {}}


def test_tools_come_before_the_system_text_and_that_before_the_messages() -> None:
    body = {"messages": [user("three")], "system": "two", "tools": [TOOL]}
    contents = [unit.content for unit in units_of(body, "anthropic", len)]
    assert contents == [
        b'{"name":"read","input_schema":{}}',
        b'{"type":"text","text":"two"}',
        b'{"role":"user","type":"text","text":"three"}',
    ]
    body = {"input": [user("three")], "instructions": "two", "tools": [TOOL]}
    assert b"two" in units_of(body, "responses", len)[1].content


def test_texts_are_counted_and_ids_are_not() -> None:
    message = {"role": "tool", "tool_call_id": "a-very-long-identifier", "content": "12345"}
    (unit,) = units_of({"messages": [message]}, "openai", len)
    assert unit.tokens == UNIT_OVERHEAD + len("tool") + len("12345")


@pytest.mark.parametrize("kind", ["image", "document"])
def test_a_picture_costs_the_same_whatever_its_bytes(kind: str) -> None:
    block = {"type": kind, "source": {"type": "base64", "data": "x" * 10_000}}
    (unit,) = units_of({"messages": [user([block])]}, "anthropic", len)
    assert unit.tokens == UNIT_OVERHEAD + MEDIA_TOKENS


def test_a_breakpoint_marks_its_unit_and_is_no_part_of_its_content() -> None:
    plain, kept = text("one"), {**text("one"), "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    first, second = units_of({"messages": [user([plain, kept])]}, "anthropic", len)
    assert first.content == second.content
    assert (first.mark, second.mark) == (None, "1h")


def test_a_breakpoint_for_the_whole_request_stands_on_its_last_block() -> None:
    body = {"messages": [user("one"), user("two")], "cache_control": {"type": "ephemeral"}}
    assert [unit.mark for unit in units_of(body, "anthropic", len)] == [None, "5m"]
