from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc import wire
from ctxgc.core import Format, Message
from ctxgc.errors import MessageError
from tests.wire.histories import PIXEL, random_history
from tests.wire.talk import ALL, calls, parsed, results, says, thinks

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
MARK = {"cache_control": {"type": "ephemeral"}}


def _parse(format: Format, data: dict[str, Any]) -> Message:  # noqa: A002
    return wire.parse(data, format, "m")


@pytest.mark.parametrize("form", ALL)
def test_the_text_of_a_message_is_replaced_and_the_old_one_stays(form: Format) -> None:
    (before,) = parsed(form, says("long story"))
    after = wire.replace_text(before, 0, "short")
    assert (after.text(), before.text()) == ("short", "long story")
    assert (after.message_id, after.source) == (before.message_id, None)


@pytest.mark.parametrize("form", ALL)
def test_the_text_of_a_result_is_replaced(form: Format) -> None:
    (before,) = parsed(form, results(form, "a", text="long"))
    after = wire.replace_text(before, 0, "short")
    assert wire.render([after]) == results(form, "a", text="short")


def test_fields_beside_the_text_stay() -> None:
    block = {"type": "text", "text": "long", **MARK, "x_unknown": [1]}
    message = _parse("anthropic", {"role": "user", "content": [block], "x": 1})
    assert wire.replace_text(message, 0, "short").data == {
        "role": "user", "content": [{**block, "text": "short"}], "x": 1,
    }  # fmt: skip


def test_a_list_of_result_blocks_becomes_one_text_and_its_images() -> None:
    content = [{"type": "text", "text": "a"}, IMAGE, {"type": "text", "text": "b", **MARK}]
    block = {"type": "tool_result", "tool_use_id": "t", "content": content, "is_error": True}
    message = _parse("anthropic", {"role": "user", "content": [block]})
    (kept,) = wire.replace_text(message, 0, "short").data["content"]
    (gone,) = wire.replace_text(message, 0, "short", keep_media=False).data["content"]
    text = {"type": "text", "text": "short", **MARK}
    assert kept == {**block, "content": [text, IMAGE]}
    assert gone == {**block, "content": [text]}
    assert wire.replace_text(message, 0, "").data["content"][0]["content"] == [IMAGE]


def test_a_responses_output_of_images_only_gets_a_text_of_its_own_kind() -> None:
    image = {"type": "input_image", "image_url": "u"}
    item = {"type": "function_call_output", "call_id": "a", "output": [image]}
    after = wire.replace_text(_parse("responses", item), 0, "short")
    assert after.data["output"] == [{"type": "input_text", "text": "short"}, image]


def test_refusals_and_strings_are_texts_too() -> None:
    refusal = {
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "no"}],
        "refusal": "n",
    }
    message = _parse("openai", refusal)
    first = wire.replace_text(message, 0, "x")
    assert first.data["content"] == [{"type": "refusal", "refusal": "x"}]
    assert wire.replace_text(message, 1, "x").data["refusal"] == "x"


def test_what_has_no_text_to_replace_is_refused() -> None:
    shot = {
        "type": "computer_call_output",
        "call_id": "a",
        "output": {"type": "computer_screenshot"},
    }
    thought = {"role": "assistant", "content": [thinks(), {"type": "text", "text": "x"}]}
    for message, place, words in (
        (_parse("responses", shot), 0, "screenshot"),
        (_parse("anthropic", thought), 0, "'thinking' has no text"),
        (_parse("anthropic", thought), 2, "the message has 2 parts"),
        (_parse("anthropic", thought), -1, "the message has 2 parts"),
    ):
        with pytest.raises(MessageError, match=words):
            wire.replace_text(message, place, "x")
    with pytest.raises(MessageError, match="blank"):
        wire.replace_text(_parse("anthropic", thought), 1, " ")


def test_one_call_of_a_batch_can_go() -> None:
    (chat,) = parsed("openai", calls("openai", "a", "b"))
    left = wire.drop_parts(chat, [0])
    assert left is not None
    assert (left.calls(), left.data["content"]) == (("b",), None)
    assert wire.drop_parts(chat, [0, 1]) is None


def test_calls_without_text_leave_no_message_but_text_stays() -> None:
    data = {**calls("openai", "a")[0], "content": "look", "reasoning_content": "hm"}
    left = wire.drop_parts(_parse("openai", data), [2])
    assert left is not None
    assert left.data == {"role": "assistant", "content": "look", "reasoning_content": "hm"}
    assert wire.drop_parts(_parse("openai", data), [1, 2]) is None
    assert wire.drop_parts(left, [0]) == _parse("openai", {"role": "assistant", "content": "look"})


def test_content_that_goes_while_calls_stay_becomes_null() -> None:
    data = {**calls("openai", "a")[0], "content": [{"type": "text", "text": "look"}]}
    left = wire.drop_parts(_parse("openai", data), [0])
    assert left is not None
    assert left.data == calls("openai", "a")[0]


def test_thinking_that_would_stand_last_goes_with_its_call() -> None:
    (call,) = calls("anthropic", "a")
    content = [{"type": "text", "text": "x"}, thinks(), *call["content"]]
    left = wire.drop_parts(_parse("anthropic", {"role": "assistant", "content": content}), [2])
    assert left is not None
    assert left.data["content"] == [{"type": "text", "text": "x"}]
    only = {"role": "assistant", "content": [thinks(), *call["content"]]}
    assert wire.drop_parts(_parse("anthropic", only), [1]) is None


def test_dropping_nothing_changes_nothing() -> None:
    (message,) = parsed("openai", says())
    assert wire.drop_parts(message, []) is message


def test_arguments_are_replaced_in_each_form() -> None:
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    sql = {"type": "custom_tool_call", "call_id": "a", "name": "sql", "input": "1"}
    cases: list[tuple[Format, dict[str, Any]]] = [
        ("openai", calls("openai", "a")[0]), ("openai", old), ("responses", sql),
        ("responses", calls("responses", "a")[0]), ("anthropic", calls("anthropic", "a")[0]),
    ]  # fmt: skip
    for form, data in cases:
        after = wire.replace_arguments(_parse(form, data), 0, '{"x":1}')
        assert after.parts[0].text == '{"x":1}'
        assert wire.replace_arguments(after, 0, _parse(form, data).parts[0].text).data == data


@pytest.mark.parametrize(
    ("arguments", "words"), [("{", "not valid JSON"), ("[]", "must be an object")]
)
def test_arguments_that_no_provider_takes_are_refused(arguments: str, words: str) -> None:
    (message,) = parsed("anthropic", calls("anthropic", "a"))
    with pytest.raises(MessageError, match=words):
        wire.replace_arguments(message, 0, arguments)


@pytest.mark.parametrize("form", ALL)
def test_a_text_message_is_valid_and_never_the_systems(form: Format) -> None:
    message = wire.text_message("user", "summary", form, "s1", "gc_summary")
    assert (message.role, message.text(), message.origin) == ("user", "summary", "gc_summary")
    assert wire.validate(wire.render([message]), form) == []
    for role in ("system", "developer", "tool"):
        with pytest.raises(MessageError, match="cannot carry text"):
            wire.text_message(role, "x", form, "s1")
    with pytest.raises(MessageError, match="blank"):
        wire.text_message("user", " ", form, "s1")


@pytest.mark.parametrize("form", ALL)
@given(st.randoms(use_true_random=False))
def test_an_edit_touches_one_part_and_leaves_the_others_equal(form: Format, rng: Random) -> None:
    for message in wire.parse_history(random_history(rng, form), form):
        for place, part in enumerate(message.parts):
            if part.kind not in ("text", "tool_result") or part.server_side:
                continue
            after = wire.replace_text(message, place, "short")
            assert after.parts[place].text.startswith("short")
            assert after.parts[:place] == message.parts[:place]
            assert after.parts[place + 1 :] == message.parts[place + 1 :]


@pytest.mark.parametrize("form", ALL)
@given(st.randoms(use_true_random=False))
def test_the_parts_that_are_not_dropped_stay_as_they_are(form: Format, rng: Random) -> None:
    for message in wire.parse_history(random_history(rng, form), form):
        gone = {place for place in range(len(message.parts)) if rng.random() > 0.5}
        left = wire.drop_parts(message, gone)
        kept = [p for place, p in enumerate(message.parts) if place not in gone]
        if left is None:
            assert all(part.kind == "thinking" or not part.text for part in kept)
            continue
        while len(kept) > len(left.parts):
            assert kept.pop().kind == "thinking"
        assert [(p.kind, p.text, p.call_id) for p in left.parts] == [
            (p.kind, p.text, p.call_id) for p in kept
        ]
