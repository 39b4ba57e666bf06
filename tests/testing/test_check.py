"""The front of the checkers, and what holds for all three of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import InputError
from ctxgc.testing import check_history, make_session
from tests.testing.builders import calling, result, tool_result, tool_use, user

FORMATS = ["openai", "responses", "anthropic"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["role", "content", "type", "tool_calls", "tool_call_id", "call_id", "id", "text", "input"]
)
VALUES = JSON | st.sampled_from(
    ["user", "assistant", "tool", "system", "text", "tool_use", "tool_result", "function_call"]
)
SMALL = st.dictionaries(KEYS, VALUES, max_size=4)
BLOCKS = st.dictionaries(KEYS, VALUES | st.lists(SMALL, max_size=3), max_size=5)
GARBAGE = st.lists(JSON | BLOCKS, max_size=5)


@pytest.mark.parametrize("form", FORMATS)
@given(messages=GARBAGE)
def test_garbage_is_judged_and_never_raises(form: str, messages: list[Any]) -> None:
    for breach in check_history(messages, form):
        assert breach.rule
        assert breach.message
        assert breach.status in (400, 404)


@pytest.mark.parametrize("form", FORMATS)
@given(seed=st.integers(0, 50), where=st.integers(0, 10**6))
def test_a_result_taken_out_of_a_valid_history_is_always_noticed(
    form: str, seed: int, where: int
) -> None:
    messages = copy.deepcopy(make_session(seed, 60, form).messages)
    places = [place for place, message in enumerate(messages) if _holds_result(message)]
    del messages[places[where % len(places)]]
    assert "open_call" in [breach.rule for breach in check_history(messages, form)]


@pytest.mark.parametrize("form", FORMATS)
@given(seed=st.integers(0, 50), where=st.integers(0, 10**6))
def test_a_call_taken_out_of_a_valid_history_is_always_noticed(
    form: str, seed: int, where: int
) -> None:
    messages = copy.deepcopy(make_session(seed, 60, form).messages)
    places = [place for place, message in enumerate(messages) if _holds_call(message)]
    del messages[places[where % len(places)]]
    assert "orphan_result" in [breach.rule for breach in check_history(messages, form)]


def _holds_result(message: dict[str, Any]) -> bool:
    if message.get("role") == "tool" or message.get("type") == "function_call_output":
        return True
    content = message.get("content")
    return isinstance(content, list) and content[0]["type"] == "tool_result"


def _holds_call(message: dict[str, Any]) -> bool:
    if "tool_calls" in message or message.get("type") == "function_call":
        return True
    content = message.get("content")
    return isinstance(content, list) and content[-1]["type"] == "tool_use"


def test_the_format_decides_which_rules_hold() -> None:
    chat = [user(), calling("a"), result("a")]
    assert check_history(chat) == []
    assert [breach.rule for breach in check_history(chat, "anthropic")] == ["shape", "role"]


def test_rules_can_be_left_out_by_name() -> None:
    again = [
        user(),
        {"role": "assistant", "content": [tool_use("a")]},
        user([tool_result("a")]),
        {"role": "assistant", "content": [tool_use("a")]},
        user([tool_result("a")]),
    ]
    assert [breach.rule for breach in check_history(again, "anthropic")] == ["duplicate_id"]
    assert check_history(again, "anthropic", ignore=["duplicate_id"]) == []


def test_an_unknown_format_is_an_input_error_that_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="unknown format 'gemini'") as error:
        check_history([user()], "gemini")
    assert error.value.hint == "use one of openai, responses, anthropic"
