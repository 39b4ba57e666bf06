"""Whole answers of a provider: refused, with a word about where the message is."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from ctxgc.errors import MessageError
from ctxgc.wire import refuse_answers

SAID = {"role": "assistant", "content": "hi"}
CHAT = ChatCompletion.model_validate(
    {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": SAID}],
    }
)
TEXT = {"type": "output_text", "text": "hi", "annotations": []}
RESPONSE = Response.model_validate(
    {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "output": [
            {**SAID, "type": "message", "id": "m", "status": "completed", "content": [TEXT]},
            {"type": "shell_call_output", "id": "s", "call_id": "c", "output": [], "status": "completed"},
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
)  # fmt: skip
CLAUDE = Message.model_validate(
    {
        "id": "a",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
)
WHOLE = [
    (CHAT, "append response.choices[0].message"),
    (CHAT.choices[0], "append response.choices[0].message"),
    (RESPONSE, "extend with response.output"),
    (CLAUDE, 'append {"role": "assistant", "content": response.content}'),
]


@pytest.mark.parametrize(("answer", "hint"), WHOLE)
def test_a_whole_answer_is_refused_with_the_place_of_its_message(answer: Any, hint: str) -> None:
    for form in (answer, answer.model_dump(mode="json"), answer.model_dump(exclude_unset=True)):
        with pytest.raises(MessageError) as caught:
            refuse_answers([SAID, form])
        assert caught.value.message == "this is a whole provider response, not a message"
        assert caught.value.hint == hint


def test_what_is_inside_an_answer_is_not_refused() -> None:
    claude = {"role": "assistant", "content": CLAUDE.content}
    plain = [item.model_dump() for item in RESPONSE.output]
    refuse_answers([CHAT.choices[0].message, *RESPONSE.output, *plain, claude, "text", 7, None])


def test_a_recorded_answer_of_anthropic_passes_where_the_format_is_named() -> None:
    refuse_answers([CLAUDE, CLAUDE.model_dump()], "anthropic")
    with pytest.raises(MessageError):
        refuse_answers([CHAT], "anthropic")
