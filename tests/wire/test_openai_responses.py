from __future__ import annotations

from typing import Any

import pytest

from ctxgc import wire
from ctxgc.core import Message, Part
from ctxgc.errors import MessageError
from tests.wire.histories import PIXEL


def _parse(**data: Any) -> Message:
    return wire.parse(data, "responses", "m")


def test_messages_with_and_without_a_type() -> None:
    easy = _parse(role="user", content="hi")
    full = _parse(type="message", role="developer", content=[{"type": "input_text", "text": "hi"}])
    said = _parse(type="message", role="assistant", content=[{"type": "refusal", "refusal": "no"}])
    assert (easy.role, easy.text()) == ("user", "hi")
    assert (full.role, full.parts) == (
        "system", (Part(kind="text", text="hi", path=("content", 0)),),
    )  # fmt: skip
    assert said.text() == "no"


def test_calls_and_outputs_of_functions_and_custom_tools() -> None:
    call = _parse(type="function_call", call_id="a", name="f", arguments='{"x":1}')
    output = _parse(
        type="function_call_output", call_id="a", output=[{"type": "input_text", "text": "ok"}]
    )
    custom = _parse(type="custom_tool_call", call_id="b", name="sql", input="select 1")
    assert call.role == "assistant"
    assert call.parts == (Part(kind="tool_call", text='{"x":1}', call_id="a", name="f"),)
    assert (output.role, output.parts) == (
        "tool",
        (Part(kind="tool_result", text="ok", call_id="a"),),
    )
    assert custom.parts[0].text == "select 1"


@pytest.mark.parametrize(
    "kind", ["local_shell_call", "shell_call", "apply_patch_call", "computer_call", "future_call"]
)
def test_every_call_with_a_call_id_pairs_with_its_output(kind: str) -> None:
    call = _parse(type=kind, id="x1", call_id="a", action={})
    output = _parse(type=f"{kind}_output", call_id="a", output=[{"type": "stdout", "text": "ok"}])
    assert wire.validate([call, output], "responses") == []
    assert call.calls() == output.results() == ("a",)


def test_a_local_shell_output_names_its_call_by_id() -> None:
    assert _parse(type="local_shell_call_output", id="a", output="ok").results() == ("a",)


def test_what_a_shell_printed_is_read_and_replaced_as_what_a_shell_printed() -> None:
    chunk = {"stdout": "a", "stderr": "b", "outcome": {"type": "exit", "exit_code": 2}}
    late = {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}
    printed = _parse(type="shell_call_output", call_id="a", output=[chunk, late])
    assert printed.parts[0].text == "a\nb\nexit code 2\ntimeout"
    assert wire.replace_text(printed, 0, "[short]").data["output"] == [
        {"stdout": "[short]", "stderr": "", "outcome": {"type": "timeout"}}
    ]


def test_the_tools_that_a_client_found_are_read_and_not_replaced() -> None:
    found = _parse(
        type="tool_search_output", call_id="a", tools=[{"type": "function", "name": "f"}]
    )
    assert found.parts[0].text == '{"type":"function","name":"f"}'
    with pytest.raises(MessageError, match="no text to replace"):
        wire.replace_text(found, 0, "[short]")


def test_a_picture_that_code_drew_weighs_like_an_image() -> None:
    drawn = {"type": "image", "url": f"data:image/png;base64,{PIXEL}"}
    part = _parse(type="code_interpreter_call", id="ci", code="x", outputs=[drawn]).parts[0]
    assert part.media_tokens == 255
    assert PIXEL not in part.text


def test_a_screenshot_weighs_like_an_image() -> None:
    shot = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PIXEL}"}
    part = _parse(type="computer_call_output", call_id="a", output=shot).parts[0]
    assert part.media_tokens == 255


@pytest.mark.parametrize(
    "kind", ["web_search_call", "file_search_call", "code_interpreter_call", "mcp_call"]
)
def test_calls_without_a_call_id_run_on_the_providers_side(kind: str) -> None:
    message = _parse(type=kind, id="x1", status="completed")
    assert (message.role, message.calls(), message.parts[0].server_side) == ("assistant", (), True)


def test_a_generated_image_is_named_instead_of_spelled() -> None:
    part = _parse(type="image_generation_call", id="ig", result=PIXEL).parts[0]
    assert part.text.startswith("[image ")
    assert part.media_tokens == 255


def test_server_side_tool_search_belongs_to_the_model() -> None:
    call = _parse(type="tool_search_call", id="ts", call_id=None, execution="server", arguments={})
    output = _parse(type="tool_search_output", id="to", call_id=None, tools=[])
    assert (call.role, output.role) == ("assistant", "assistant")
    assert call.parts[0].server_side
    assert output.parts[0].server_side


def test_reasoning_is_signed_where_it_is_encrypted() -> None:
    summary = [{"type": "summary_text", "text": "hm"}]
    sealed = _parse(type="reasoning", id="rs", summary=summary, encrypted_content="gAAA")
    assert sealed.parts == (Part(kind="thinking", text="hm", signed=True),)
    assert not _parse(type="reasoning", id="rs", summary=[]).parts[0].signed


@pytest.mark.parametrize(
    ("data", "role"),
    [
        ({"type": "compaction", "encrypted_content": "gAAA"}, "assistant"),
        ({"type": "item_reference", "id": "msg_1"}, "assistant"),
        ({"type": None, "id": "msg_1"}, "assistant"),
        ({"id": "msg_1"}, "assistant"),
        ({"type": "configuration_update", "reasoning": {"effort": "low"}}, "system"),
        ({"type": "compaction_trigger"}, "system"),
        ({"type": "function_call_output", "output": "x", "name": "f"}, "tool"),
        ({"type": "additional_tools", "role": "developer", "tools": []}, "system"),
        ({"type": "hologram", "x": 1}, "assistant"),
    ],
)
def test_other_items_are_kept_as_they_are(data: dict[str, Any], role: str) -> None:
    message = _parse(**data)
    assert (message.role, message.parts[0].kind) == (role, "other")
    assert message.parts[0].signed is ("encrypted_content" in data)
    assert wire.render([message]) == [data]


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"type": 3}, "type"),
        ({}, "role"),
        ({"role": "tool", "content": "x"}, "role"),
        ({"role": "user", "content": None}, "content"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "content[0].text"),
        ({"type": "function_call", "call_id": "a", "name": "f"}, "arguments"),
        ({"type": "function_call", "arguments": "{}", "name": "f"}, "call_id"),
        ({"type": "custom_tool_call_output", "output": "x"}, "call_id"),
        ({"type": "local_shell_call_output", "output": "x"}, "call_id"),
        ({"type": "function_call_output", "call_id": 3, "output": "x"}, "call_id"),
        ({"type": "mcp_approval_response", "approve": True}, "approval_request_id"),
    ],
)
def test_a_wrong_shape_is_refused_by_its_field(data: dict[str, Any], field: str) -> None:
    with pytest.raises(MessageError) as caught:
        _parse(**data)
    assert caught.value.details["field"] == field
