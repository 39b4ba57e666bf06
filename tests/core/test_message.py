"""Messages: made of their parts alone, and how much of two histories is the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import Message, Part, common_prefix
from ctxgc.errors import InputError
from ctxgc.wire import parse, render, replace_text
from tests.requirements import requirement

OBJECTS = [[n] for n in range(4)]
SEQUENCES = st.lists(st.sampled_from(OBJECTS), max_size=12)


@given(SEQUENCES, SEQUENCES)
def test_it_counts_the_same_objects_from_the_beginning_on(
    before: list[list[int]], now: list[list[int]]
) -> None:
    count = 0
    while count < min(len(before), len(now)) and before[count] is now[count]:
        count += 1
    assert common_prefix(before, now) == count


def test_equal_things_are_not_the_same() -> None:
    assert common_prefix([OBJECTS[0], [1]], [OBJECTS[0], [1]]) == 1


@requirement("S2.messages.made-of-parts", "S2.messages.message-id-default")
@pytest.mark.parametrize(
    ("role", "parts", "data"),
    [
        ("user", [Part(text="Hello")], {"role": "user", "content": "Hello"}),
        (
            "user",
            [Part(text="Hello"), Part(text="again")],
            {
                "role": "user",
                "content": [{"type": "text", "text": "Hello"}, {"type": "text", "text": "again"}],
            },
        ),
        (
            "assistant",
            [Part(kind="tool_call", text="{}", call_id="c1", name="run")],
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
                ],
            },
        ),
        (
            "tool",
            [Part(kind="tool_result", text="done", call_id="c1")],
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ),
    ],
)
def test_a_message_made_of_its_parts_is_the_one_that_its_form_reads_as(
    role: Any, parts: Any, data: dict[str, Any]
) -> None:
    made = Message(role, parts, "m1")
    assert made == parse(data, "openai", "m1")
    assert render([made]) == [data]
    assert Message(role, parts).message_id != Message(role, parts, None).message_id  # type: ignore[arg-type]


def test_a_message_made_of_its_parts_can_be_edited() -> None:
    made = Message("user", [Part(text="Hello"), Part(text="again")])  # type: ignore[arg-type]
    assert replace_text(made, 1, "now").text() == "Hello\nnow"


@pytest.mark.parametrize(
    ("role", "parts", "more"),
    [
        ("assistant", [Part(kind="thinking", text="hm")], {}),
        ("user", [Part(kind="tool_result", text="x", call_id="c1")], {}),
        ("tool", [Part(kind="tool_result"), Part(kind="tool_result")], {}),
        ("user", [Part(text="x")], {"format": "anthropic"}),
    ],
)
def test_parts_without_a_form_of_their_own_are_refused(role: Any, parts: Any, more: Any) -> None:
    with pytest.raises(InputError, match="cannot be made of these parts alone"):
        Message(role, parts, **more)
