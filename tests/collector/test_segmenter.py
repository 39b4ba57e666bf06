"""From messages to segments: one part, one segment, bound to its call, exchanged when edited."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from ctxgc.collector import Segmenter
from ctxgc.core import Message
from ctxgc.wire import drop_parts, parse, replace_text
from tests.strategies.build import COUNTER

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def segmenter() -> Segmenter:
    return Segmenter(COUNTER, clock=lambda: NOON)


def called(command: str, call_id: str = "a") -> Message:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    calls = [{"id": call_id, "type": "function", "function": function}]
    return parse({"role": "assistant", "content": None, "tool_calls": calls}, "openai")


def answered(text: str, call_id: str = "a") -> Message:
    return parse({"role": "tool", "tool_call_id": call_id, "content": text}, "openai")


def blocks(*content: dict[str, Any]) -> Message:
    return parse({"role": "assistant", "content": list(content)}, "anthropic", "m")


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def test_a_result_knows_its_call_and_what_it_was_about() -> None:
    made = segmenter()
    (call,) = made.take(called("cat src/app.py"))
    (result,) = made.take(answered("import os"))
    segment = made.heap.get(result)
    assert (segment.type, segment.file_path, segment.access) == ("code", "src/app.py", "read")
    assert segment.bond_id == made.heap.get(call).bond_id
    assert segment.created_at == NOON


def test_an_id_that_is_used_again_binds_to_the_nearest_open_call() -> None:
    made = segmenter()
    bonds = []
    for command in ("ls", "pwd"):
        (call,) = made.take(called(command))
        (result,) = made.take(answered(command))
        assert made.heap.get(call).bond_id == made.heap.get(result).bond_id
        bonds.append(made.heap.get(call).bond_id)
    assert len(set(bonds)) == 2


def test_arguments_that_are_not_json_tell_nothing_and_break_nothing() -> None:
    function = {"name": "bash", "arguments": "{not json"}
    data = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "type": "function", "function": function}],
    }
    made = segmenter()
    (segment_id,) = made.take(parse(data, "openai"))
    assert made.heap.get(segment_id).file_path is None


def test_an_edit_keeps_what_is_the_same_and_makes_a_stand_in_for_the_rest() -> None:
    made = segmenter()
    before = blocks(text("one"), text("two"))
    first, second = made.take(before)
    after = replace_text(before, 1, "2")
    exchange = made.exchange(before, after, (first, second))
    (stand_in,) = exchange.made
    assert exchange.ids == (first, stand_in.segment_id)
    assert (stand_in.text, stand_in.derived_from, exchange.dropped) == ("2", second, ())
    made.carry_out("m", exchange)
    assert made.segment_ids("m") == exchange.ids
    assert made.heap.get(second).tier == "stashed"
    assert made.heap.get(stand_in.segment_id).position == made.heap.get(second).position


def test_of_two_equal_parts_the_edited_one_is_exchanged() -> None:
    made = segmenter()
    before = blocks(text("same"), text("same"))
    first, second = made.take(before)
    exchange = made.exchange(before, replace_text(before, 0, "other"), (first, second))
    assert exchange.ids[1] == second
    assert exchange.made[0].derived_from == first


def test_a_stand_in_comes_from_a_part_of_its_own_kind() -> None:
    made = segmenter()
    before = blocks(THINKING, text("a long answer"))
    thinking, answer = made.take(before)
    stripped = drop_parts(before, [0])
    assert stripped is not None
    exchange = made.exchange(before, replace_text(stripped, 0, "short"), (thinking, answer))
    assert exchange.made[0].derived_from == answer
    assert exchange.dropped == (thinking,)


def test_preparing_changes_no_heap() -> None:
    made = segmenter()
    prepared = made.prepare(called("ls"))
    assert len(made.heap) == 0
    assert made.enter(called("ls"), prepared) == (prepared[0].segment_id,)
