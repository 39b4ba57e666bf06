from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc import wire
from ctxgc.core import Format
from ctxgc.errors import MessageError
from ctxgc.testing import check_history
from ctxgc.wire.repairs import INTERRUPTED, NOTICE
from tests.wire.breaking import break_history
from tests.wire.histories import BEYOND, broken_histories, histories, random_history
from tests.wire.talk import ALL, calls, parsed, results, says, thinks, user

Json = dict[str, Any]


def _fixes(result: wire.RepairResult[Any]) -> list[tuple[str, str, int | None, str | None]]:
    return [(fix.promise, fix.action, fix.index, fix.call_id) for fix in result.fixes]


def _interrupted(format: Format, call_id: str) -> list[Json]:  # noqa: A002
    made = results(format, call_id, text=INTERRUPTED)
    if format == "anthropic":
        made[0]["content"][0]["is_error"] = True
    return made


@pytest.mark.parametrize("form", ALL)
@given(st.data())
def test_a_valid_history_comes_back_as_the_same_objects(form: Format, data: st.DataObject) -> None:
    messages = wire.parse_history(data.draw(histories(form)), form)
    result = wire.repair(messages, form)
    assert result.fixes == []
    assert all(a is b for a, b in zip(result.messages, messages, strict=True))


@pytest.mark.parametrize("form", ALL)
@pytest.mark.parametrize("complete", [True, False])
@given(st.data())
def test_every_broken_history_becomes_valid_once_and_for_all(
    form: Format, complete: bool, data: st.DataObject
) -> None:
    broken = data.draw(broken_histories(form))
    result = wire.repair(broken, form, complete=complete)
    assert wire.validate(result.messages, form, complete=complete) == []
    assert bool(result.fixes) == bool(wire.validate(broken, form, complete=complete))
    again = wire.repair(result.messages, form, complete=complete)
    assert (again.messages, again.fixes) == (result.messages, [])


@pytest.mark.parametrize("form", ALL)
def test_two_thousand_repaired_histories_pass_the_independent_checker(form: Format) -> None:
    rng = Random(20)
    # Which block types a message of Responses may hold is left to the provider.
    ignored = (*BEYOND, "content") if form == "responses" else BEYOND
    for _ in range(2_000):
        history = random_history(rng, form)
        for _ in range(1 + int(rng.random() * 5)):
            history = break_history(rng, history, form)
        repaired = wire.repair(history, form).messages
        assert check_history(repaired, form, ignore=ignored) == [], history


@pytest.mark.parametrize("form", ALL)
@given(st.data())
def test_nothing_that_leaves_the_history_is_lost(form: Format, data: st.DataObject) -> None:
    broken = data.draw(broken_histories(form))
    result = wire.repair(broken, form)
    found = repr((result.messages, [fix.content for fix in result.fixes]))
    for message in broken:
        for text in _texts(message, form):
            assert repr(text)[1:-1] in found


def _texts(message: Any, form: Format) -> list[str]:
    try:
        parts = wire.parse(message, form).parts
    except MessageError:
        return []
    return [part.text for part in parts if part.kind == "text"]


@pytest.mark.parametrize("form", ALL)
def test_an_orphan_result_is_taken_out_and_given_back(form: Format) -> None:
    history = [*user(), *results(form, "a", text="precious"), *says()]
    result = wire.repair(history, form)
    assert result.messages == [*user(), *says()]
    assert _fixes(result) == [("P1.pair", "dropped", 1, "a")]
    assert "precious" in repr(result.fixes[0].content)


@pytest.mark.parametrize("form", ALL)
def test_an_interrupted_call_gets_a_result_that_says_so(form: Format) -> None:
    history = [*user(), *calls(form, "a"), *says()]
    result = wire.repair(history, form)
    assert result.messages == [*user(), *calls(form, "a"), *_interrupted(form, "a"), *says()]
    assert _fixes(result) == [("P1.pair", "added", None, "a")]


@pytest.mark.parametrize("form", ALL)
def test_calls_that_wait_at_the_end_are_left_alone_while_the_turn_runs(form: Format) -> None:
    history = [*user(), *calls(form, "a", "b")]
    assert wire.repair(history, form, complete=False) == wire.RepairResult(history, [])
    sent = wire.repair(history, form)
    assert [fix.call_id for fix in sent.fixes] == ["a", "b"]


def test_the_results_of_one_anthropic_batch_end_up_in_one_user_message() -> None:
    history = [*user(), *calls("anthropic", "a", "b"), *results("anthropic", "b"), *user("more")]
    result = wire.repair(history, "anthropic")
    first, second = _interrupted("anthropic", "a"), results("anthropic", "b")
    content = [*first[0]["content"], *second[0]["content"]]
    assert result.messages[2:] == [{"role": "user", "content": content}, *user("more")]


@pytest.mark.parametrize("form", ALL)
def test_a_second_result_goes_and_the_first_stays(form: Format) -> None:
    history = [*user(), *calls(form, "a"), *results(form, "a"), *results(form, "a", text="again")]
    result = wire.repair(history, form)
    assert result.messages == [*user(), *calls(form, "a"), *results(form, "a")]
    assert _fixes(result) == [("P1.single", "dropped", 3, "a")]


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_a_result_that_stands_away_moves_behind_its_call(form: Format) -> None:
    history = [*user(), *calls(form, "a"), *user("hm"), *says(), *results(form, "a"), *says("end")]
    result = wire.repair(history, form)
    assert wire.validate(result.messages, form) == []
    assert _fixes(result) == [("P1.batch", "moved", 4, "a")]
    if form == "openai":
        moved = [
            *user(),
            *calls(form, "a"),
            *results(form, "a"),
            *user("hm"),
            *says(),
            *says("end"),
        ]
        assert result.messages == moved


@pytest.mark.parametrize("form", ALL)
def test_a_result_in_front_of_its_call_moves_behind_it(form: Format) -> None:
    history = [*user(), *results(form, "a"), *calls(form, "a"), *says()]
    result = wire.repair(history, form)
    assert result.messages == [*user(), *calls(form, "a"), *results(form, "a"), *says()]
    assert _fixes(result) == [("P1.batch", "moved", 1, "a")]


def test_text_in_front_of_anthropic_results_moves_behind_them() -> None:
    text = {"type": "text", "text": "x"}
    (made,) = results("anthropic", "a")
    late = [{"role": "user", "content": [text, *made["content"]]}]
    result = wire.repair([*user(), *calls("anthropic", "a"), *late], "anthropic")
    assert result.messages[2] == {"role": "user", "content": [*made["content"], text]}


def test_broken_arguments_are_wrapped_and_empty_ones_become_an_object() -> None:
    function = calls("responses", "a", "b", "c")
    function[0]["arguments"], function[1]["arguments"] = '{"cut', ""
    result = wire.repair([*function, *results("responses", "a", "b", "c")], "responses")
    assert [item["arguments"] for item in result.messages[:3]] == [
        '{"_invalid":"{\\"cut"}',
        "{}",
        "{}",
    ]
    assert [(fix.action, fix.content) for fix in result.fixes] == [
        ("rewritten", '{"cut'),
        ("rewritten", ""),
    ]


def test_a_notice_goes_in_front_where_the_user_must_speak_first() -> None:
    result = wire.repair([*says(), *user()], "anthropic")
    notice = {"role": "user", "content": [{"type": "text", "text": NOTICE}]}
    assert result.messages == [notice, *says(), *user()]
    assert _fixes(result) == [("P14.first", "added", None, None)]


def test_thinking_without_signature_or_answer_is_taken_out() -> None:
    bare = {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "y"}],
    }
    alone = {"role": "assistant", "content": [thinks()]}
    result = wire.repair([*user(), bare, *user(), alone, *user()], "anthropic")
    answer = {"role": "assistant", "content": [{"type": "text", "text": "y"}]}
    assert result.messages == [*user(), answer, *user(), *user()]
    assert _fixes(result) == [
        ("P2.verbatim", "dropped", 1, None),
        ("P2.follow", "dropped", 3, None),
    ]


def test_empty_content_is_filled_or_taken_out() -> None:
    chat = wire.repair(
        [{"role": "user", "content": None}, {**says()[0], "tool_calls": []}], "openai"
    )
    assert chat.messages == [{"role": "user", "content": ""}, *says()]
    blank = {"type": "text", "text": " "}
    history = [
        *user(),
        {"role": "assistant", "content": [blank]},
        {"role": "user", "content": []},
        *says(),
    ]
    assert wire.repair(history, "anthropic").messages == [*user(), *says()]


def test_blank_text_within_a_result_goes() -> None:
    (made,) = results("anthropic", "a")
    made["content"][0]["content"] = [{"type": "text", "text": ""}, {"type": "text", "text": "ok"}]
    result = wire.repair([*user(), *calls("anthropic", "a"), made], "anthropic")
    assert result.messages[2]["content"][0]["content"] == [{"type": "text", "text": "ok"}]


def test_a_call_that_nobody_can_answer_goes_with_its_reasoning() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    click = {"type": "computer_call", "id": "cu_1", "call_id": "a", "action": {"type": "click"}}
    result = wire.repair([*user(), reasoning, click, *user("stop")], "responses")
    assert result.messages == [*user(), *user("stop")]
    assert [fix.index for fix in result.fixes] == [2, 1]


def test_an_item_that_stands_twice_stays_once() -> None:
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": "x"}
    result = wire.repair([*user(), item, item], "responses")
    assert result.messages == [*user(), item]
    assert _fixes(result) == [("P14.unique", "dropped", 2, None)]


def test_a_message_of_unknown_shape_is_given_back_as_it_was() -> None:
    strange: list[Any] = [*user(), {"role": "usr", "content": "x"}, 3]
    result = wire.repair(strange, "openai")
    assert result.messages == user()
    assert [fix.content for fix in result.fixes] == [{"role": "usr", "content": "x"}, 3]


def test_the_input_is_never_changed_and_ids_stay() -> None:
    history = [*user(), *calls("openai", "a"), *says()]
    before = repr(history)
    wire.repair(history, "openai")
    assert repr(history) == before
    repaired = wire.repair(parsed("openai", history), "openai").messages
    assert [message.message_id for message in repaired] == ["m0", "m1", "m1:a:result", "m2"]


def test_an_empty_history_stays_empty() -> None:
    assert wire.repair([], "anthropic") == wire.RepairResult([], [])
