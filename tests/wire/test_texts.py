"""Texts: what the parts of a history say, each read once."""

from __future__ import annotations

from ctxgc.core import Message
from ctxgc.wire import PartTexts, parse, replace_text

CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": '{"p": "a_b"}'}}
    ],
}


def result(text: str) -> Message:
    return parse({"role": "tool", "tool_call_id": "c1", "content": text}, "openai", "m2")


def test_a_part_is_read_once() -> None:
    texts, message = PartTexts(), result("line of the_result")
    texts.read(message)
    first = texts.of("m2", 0, message.parts[0])
    assert texts.of("m2", 0, message.parts[0]) is first
    assert first.names == {"the_result"}


def test_a_part_that_changed_is_read_again() -> None:
    texts, message = PartTexts(), result("line of the_result")
    texts.read(message)
    other = replace_text(message, 0, "only the_rest", keep_media=False)
    assert texts.of("m2", 0, other.parts[0]).names == {"the_rest"}


def test_a_call_says_its_name_and_its_arguments() -> None:
    texts, message = PartTexts(), parse(CALL, "openai", "m1")
    assert texts.of("m1", 0, message.parts[0]).lines == ["Read", "a_b"]


def test_a_tombstone_says_the_lines_under_it() -> None:
    texts = PartTexts()
    stub = result("[ctxgc: 40 tokens, cold]\nNames: x_y\nkept the_line\n[...]\nand more")
    assert texts.of("m2", 0, stub.parts[0]).lines == ["kept the_line", "and more"]


def test_what_is_no_longer_shown_is_forgotten() -> None:
    texts, message = PartTexts(), result("line of the_result")
    first = texts.of("m2", 0, message.parts[0])
    texts.keep(["m1"])
    assert texts.of("m2", 0, message.parts[0]) is not first
