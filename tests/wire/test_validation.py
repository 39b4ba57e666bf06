from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc import wire
from ctxgc.core import Format
from ctxgc.errors import MessageError
from ctxgc.testing import check_history
from tests.wire.histories import BEYOND, JSON, broken_histories, histories
from tests.wire.talk import ALL, calls, parsed, results, says, user


@pytest.mark.parametrize("form", ALL)
def test_provider_messages_text_and_parsed_messages_are_all_checked(form: Format) -> None:
    history = [*user(), *results(form, "a"), *says()]
    messages = parsed(form, history)
    texts = [wire.message_bytes(message) for message in messages]
    found = [wire.validate(each, form) for each in (history, texts, messages)]
    assert [[(v.promise, v.index, v.call_id) for v in each] for each in found] == [
        [("P1.pair", 1, "a")]
    ] * 3


def test_a_message_of_unknown_shape_is_a_violation_and_the_rest_is_still_checked() -> None:
    history: list[Any] = [*user(), {"role": "usr"}, 3, *calls("openai", "a"), *user("stop")]
    found = wire.validate(history, "openai")
    assert [(each.promise, each.index) for each in found] == [
        ("P14.shape", 1), ("P14.shape", 2), ("P1.pair", 3),
    ]  # fmt: skip
    assert found[0].text == "`role` 'usr' is unknown"


def test_a_message_of_another_format_is_a_violation() -> None:
    (found,) = wire.validate(parsed("openai", user()), "anthropic")
    assert found.text == "the message is in the format 'openai', not 'anthropic'"


@pytest.mark.parametrize("form", ALL)
@given(st.data())
def test_valid_histories_are_valid(form: Format, data: st.DataObject) -> None:
    pending = data.draw(st.booleans())
    history = data.draw(histories(form, pending=pending))
    assert wire.validate(history, form, complete=not pending) == []
    assert bool(wire.validate(history, form)) == pending


@pytest.mark.parametrize("form", ALL)
@given(st.data())
def test_the_independent_checker_finds_nothing_that_we_overlook(
    form: Format, data: st.DataObject
) -> None:
    history = data.draw(broken_histories(form))
    # Which block types a message of Responses may hold is left to the provider.
    ignored = (*BEYOND, "content") if form == "responses" else BEYOND
    if check_history(history, form, ignore=ignored):
        assert wire.validate(history, form) != []


@given(st.data())
def test_in_openai_chats_we_find_nothing_that_the_independent_checker_does_not(
    data: st.DataObject,
) -> None:
    history = data.draw(broken_histories("openai"))
    judged = check_history(history, "openai", ignore=("empty_history",))
    assert bool(wire.validate(history, "openai")) == bool(judged)


@pytest.mark.parametrize("work", [wire.validate, wire.repair])
@pytest.mark.parametrize(
    ("field", "messages", "form"),
    [
        ("messages", None, "openai"),
        ("messages", "hello", "openai"),
        ("messages", {"role": "user", "content": "hello"}, "openai"),
        ("format", [], "gemini"),
        ("format", [{"role": "user", "content": "hello"}], "gemini"),
    ],
)
def test_what_is_no_history_in_no_known_format_is_refused(
    work: Any, field: str, messages: Any, form: Any
) -> None:
    with pytest.raises(MessageError) as caught:
        work(messages, form)
    assert caught.value.details["field"] == field


HOSTILE = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "tool", "system", "x"]) | JSON,
        "type": st.sampled_from(["message", "function_call", "program", "reasoning"]) | JSON,
        "content": JSON
        | st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(["text", "tool_use", "tool_result", "thinking", "image"])},
                optional={"text": JSON, "content": JSON, "id": JSON, "tool_use_id": JSON},
            )
        ),
        "tool_calls": JSON,
        "call_id": JSON,
        "caller": JSON,
        "output": JSON,
        "id": JSON,
        "summary": JSON,
        "source": JSON,
    },
)


@pytest.mark.parametrize("form", ALL)
@given(st.lists(HOSTILE | JSON, max_size=6))
def test_no_input_however_strange_makes_the_check_or_the_repair_fail(
    form: Format, history: list[Any]
) -> None:
    wire.validate(history, form)
    assert wire.validate(wire.repair(history, form).messages, form) == []
