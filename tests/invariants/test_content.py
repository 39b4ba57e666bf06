from __future__ import annotations

from typing import Any

import pytest

from ctxgc import wire
from ctxgc.invariants import ContentIsPresent
from tests.wire.talk import calls, parsed, says, thinks, user

CONTENT = ContentIsPresent()


def _openai(**message: Any) -> list[str]:
    return [each.text for each in CONTENT.check(parsed("openai", [message]))]


def _anthropic(role: str, content: Any) -> list[str]:
    history = parsed("anthropic", user(), [{"role": role, "content": content}], user())
    return [each.text for each in CONTENT.check(history)]


def test_openai_takes_empty_text_but_no_null() -> None:
    assert _openai(role="user", content="") == []
    assert _openai(role="user", content=None) == ["the message has no content"]
    assert _openai(role="assistant", reasoning_content="hm") == ["the message has no content"]


@pytest.mark.parametrize("excuse", [{"refusal": "no"}, {"audio": {"id": "a1"}}])
def test_an_assistant_that_refuses_or_speaks_needs_no_content(excuse: dict[str, Any]) -> None:
    assert _openai(role="assistant", content=None, **excuse) == []


def test_a_function_of_the_oldest_kind_may_return_null() -> None:
    call = {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}
    returned = {"role": "function", "name": "f", "content": None}
    assert wire.validate([call, returned], "openai") == []
    assert len(wire.validate([call, {"role": "function", "name": "f"}], "openai")) == 1


def test_openai_takes_no_empty_lists() -> None:
    (call,) = calls("openai", "a")
    assert _openai(**{**call, "content": []}) == ["the message has no content"]
    assert _openai(role="assistant", content="x", tool_calls=[]) == [
        "the list of tool calls is empty"
    ]


@pytest.mark.parametrize("content", [[], ""])
def test_anthropic_takes_no_empty_message(content: Any) -> None:
    assert len(_anthropic("user", content)) == len(_anthropic("assistant", content)) == 1


def test_anthropic_takes_no_blank_text_block() -> None:
    assert _anthropic("user", [{"type": "text", "text": " \n"}, {"type": "text", "text": "x"}]) == [
        "a text block is blank"
    ]


def test_blank_text_within_a_result_counts_but_an_empty_result_does_not() -> None:
    blank = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": ""}]}
    assert _anthropic("user", [blank]) == ["a text block is blank"]
    assert _anthropic("user", [{**blank, "content": ""}]) == []
    assert _anthropic("user", [{"type": "tool_result", "tool_use_id": "a"}]) == []


@pytest.mark.parametrize("content", [[], ""])
def test_the_last_assistant_message_may_be_empty(content: Any) -> None:
    history = parsed("anthropic", user(), [{"role": "assistant", "content": content}])
    assert CONTENT.check(history) == []


def test_thinking_without_words_is_content() -> None:
    history = parsed("anthropic", user(), [{"role": "assistant", "content": [thinks("")]}], says())
    assert CONTENT.check(history) == []
