from __future__ import annotations

from typing import Any

import pytest

from ctxgc import wire
from ctxgc.core import Message, Part
from ctxgc.errors import MessageError


def _parse(**data: Any) -> Message:
    return wire.parse(data, "openai", "m")


@pytest.mark.parametrize(
    ("role", "ours"),
    [("system", "system"), ("developer", "system"), ("user", "user"), ("assistant", "assistant")],
)
def test_plain_text_of_each_role(role: str, ours: str) -> None:
    message = _parse(role=role, content="hi")
    assert (message.role, message.parts) == (
        ours,
        (Part(kind="text", text="hi", path=("content",)),),
    )


def test_an_assistant_message_in_all_its_parts() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "Bash", "arguments": '{"x":1}'}}
    custom = {"id": "b", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    message = _parse(
        role="assistant", content="look", refusal="no", reasoning_content="hm",
        reasoning_details=[{"data": "gAAA"}], tool_calls=[call, custom],
    )  # fmt: skip
    assert message.parts == (
        Part(kind="thinking", text="hm", path=("reasoning_content",)),
        Part(kind="thinking", text='[{"data":"gAAA"}]', path=("reasoning_details",), signed=True),
        Part(kind="text", text="look", path=("content",)),
        Part(kind="text", text="no", path=("refusal",)),
        Part(kind="tool_call", text='{"x":1}', path=("tool_calls", 0), call_id="a", name="Bash"),
        Part(kind="tool_call", text="select 1", path=("tool_calls", 1), call_id="b", name="sql"),
    )
    assert message.calls() == ("a", "b")


def test_a_tool_message_is_one_result() -> None:
    content = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    message = _parse(role="tool", tool_call_id="a", content=content, name="Bash")
    assert message.role == "tool"
    assert message.parts == (Part(kind="tool_result", text="one\ntwo", call_id="a", name="Bash"),)


def test_the_old_functions_pair_by_name() -> None:
    call = _parse(role="assistant", content=None, function_call={"name": "f", "arguments": "{}"})
    result = _parse(role="function", name="f", content="ok")
    assert call.calls() == result.results() == ("function:f",)
    assert wire.validate([call, result], "openai") == []


def test_media_and_unknown_parts_are_kept_and_counted() -> None:
    message = _parse(
        role="user",
        content=[
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "hologram", "x": 1},
        ],
    )
    assert [part.kind for part in message.parts] == ["media", "media", "media", "other"]
    assert all(part.media_tokens > 0 for part in message.parts[:3])
    assert message.parts[3].text == '{"type":"hologram","x":1}'
    assert message.opens_turn()


def test_null_and_missing_content_have_no_parts() -> None:
    assert _parse(role="assistant", content=None).parts == _parse(role="user").parts == ()


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"role": None}, "role"),
        ({"role": ["user"]}, "role"),
        ({"role": "user", "content": 7}, "content"),
        ({"role": "user", "content": ["hi"]}, "content[0]"),
        ({"role": "user", "content": [{"type": "text"}]}, "content[0].text"),
        ({"role": "tool", "content": "x"}, "tool_call_id"),
        ({"role": "tool", "tool_call_id": "a", "content": 7}, "content"),
        ({"role": "function", "content": "x"}, "name"),
        ({"role": "assistant", "tool_calls": {}}, "tool_calls"),
        ({"role": "assistant", "tool_calls": [{"function": {}}]}, "tool_calls[0].id"),
        ({"role": "assistant", "tool_calls": [{"id": "a"}]}, "tool_calls[0].function"),
        (
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f"}}]},
            "tool_calls[0].function.arguments",
        ),
        ({"role": "assistant", "function_call": "f"}, "function_call"),
    ],
)
def test_a_wrong_shape_is_refused_by_its_field(data: dict[str, Any], field: str) -> None:
    with pytest.raises(MessageError) as caught:
        _parse(**data)
    assert caught.value.details["field"] == field
    assert f"`{field}`" in caught.value.message


def test_a_content_of_the_wrong_type_is_told_what_it_may_be() -> None:
    with pytest.raises(MessageError) as caught:
        wire.parse({"role": "user", "content": 5}, "openai")
    assert caught.value.message == "`content` must be a text or a list, got int"
