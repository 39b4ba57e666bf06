from __future__ import annotations

from typing import Any

import pytest

from ctxgc import wire
from ctxgc.core import Message, Part
from ctxgc.errors import MessageError
from ctxgc.wire import dump
from tests.wire.histories import PIXEL

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


def _parse(role: str, content: Any) -> Message:
    return wire.parse({"role": role, "content": content}, "anthropic", "m")


def test_text_may_be_a_string_or_a_block() -> None:
    assert _parse("user", "hi").parts == (Part(kind="text", text="hi", path=("content",)),)
    assert _parse("user", [{"type": "text", "text": "hi"}]).parts == (
        Part(kind="text", text="hi", path=("content", 0)),
    )


def test_a_system_entry_stays_where_it_is() -> None:
    assert _parse("system", "be brief").role == "system"


def test_thinking_is_signed_and_a_call_holds_its_input_as_json() -> None:
    message = _parse(
        "assistant",
        [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "RW5j"},
            {"type": "tool_use", "id": "a", "name": "Bash", "input": {"x": "☕"}},
        ],
    )
    assert message.parts == (
        Part(kind="thinking", text="hm", path=("content", 0), signed=True),
        Part(kind="thinking", text="RW5j", path=("content", 1), signed=True),
        Part(kind="tool_call", text='{"x":"☕"}', path=("content", 2), call_id="a", name="Bash"),
    )


def test_a_result_may_be_text_a_list_or_nothing() -> None:
    block = {"type": "tool_result", "tool_use_id": "a"}
    text, mixed, nothing = _parse(
        "user",
        [
            {**block, "content": "ok", "is_error": True},
            {**block, "content": [{"type": "text", "text": "see"}, IMAGE]},
            block,
        ],
    ).parts
    assert text == Part(
        kind="tool_result", text="ok", path=("content", 0), call_id="a", is_error=True
    )
    assert mixed.text.startswith("see\n[image image/png ")
    assert (mixed.media_tokens, nothing.text, nothing.media_tokens) == (255, "", 0)


def test_server_tools_are_marked_and_make_no_client_calls() -> None:
    message = _parse(
        "assistant",
        [
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "u"}]},
            {"type": "mcp_tool_use", "id": "t", "name": "f", "server_name": "m", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "t", "is_error": True, "content": []},
        ],
    )
    assert [(part.kind, part.call_id) for part in message.parts] == [
        ("tool_call", "s"), ("tool_result", "s"), ("tool_call", "t"), ("tool_result", "t"),
    ]  # fmt: skip
    assert all(part.server_side for part in message.parts)
    assert message.parts[3].is_error
    assert (message.calls(), message.results()) == ((), ())


def test_a_system_message_may_set_the_output_and_say_nothing() -> None:
    data = {"role": "system", "output_config": {"effort": "low"}}
    history = [{"role": "user", "content": "go"}, data]
    assert wire.parse(data, "anthropic").parts == ()
    assert wire.validate(history, "anthropic") == []
    assert wire.repair(history, "anthropic").messages == history


def test_a_compaction_is_kept_and_known_as_sealed() -> None:
    block = {"type": "compaction", "content": "so far", "signature": "c2ln"}
    (part,) = _parse("assistant", [block]).parts
    assert (part.kind, part.name, part.signed) == ("other", "compaction", True)


@pytest.mark.parametrize(
    "source",
    [
        {"type": "text", "media_type": "text/plain", "data": "one two"},
        {"type": "content", "content": "one two"},
        {"type": "content", "content": [{"type": "text", "text": "one two"}]},
    ],
)
def test_a_document_that_is_given_as_text_is_read_as_text(source: dict[str, Any]) -> None:
    block = {"type": "document", "source": source, "title": "t"}
    (part,) = _parse("user", [block]).parts
    assert (part.kind, part.text, part.media_tokens) == ("media", dump(block), 0)
    result = {"type": "tool_result", "tool_use_id": "a", "content": [block]}
    (within,) = _parse("user", [result]).parts
    assert (within.text, within.media_tokens) == (dump(block), 0)


def test_a_file_that_the_provider_fetched_weighs_like_any_file() -> None:
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "A" * 400_000}
    page = {"type": "web_fetch_result", "url": "u", "content": {"type": "document", "source": pdf}}
    block = {"type": "web_fetch_tool_result", "tool_use_id": "a", "content": page}
    (part,) = _parse("assistant", [block]).parts
    assert part.media_tokens == 15_000
    assert len(part.text) < 200


def test_documents_weigh_and_unknown_blocks_are_kept() -> None:
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "A" * 400_000}
    document, upload, found = _parse(
        "user",
        [
            {"type": "document", "source": pdf, "title": "t"},
            {"type": "container_upload", "file_id": "f"},
            {"type": "search_result", "source": "u", "title": "t", "content": []},
        ],
    ).parts
    assert (document.kind, document.media_tokens) == ("media", 15_000)
    assert (upload.kind, found.kind) == ("other", "other")
    assert upload.text == '{"type":"container_upload","file_id":"f"}'


@pytest.mark.parametrize(
    ("role", "content", "field"),
    [
        ("tool", "x", "role"),
        ("user", None, "content"),
        ("user", [1], "content[0]"),
        ("user", [{"text": "x"}], "content[0].type"),
        ("user", [{"type": "text", "text": None}], "content[0].text"),
        ("user", [{"type": "tool_result", "content": "x"}], "content[0].tool_use_id"),
        ("assistant", [{"type": "tool_use", "name": "f", "input": {}}], "content[0].id"),
        ("user", [{"type": "tool_use", "id": "a", "name": "f", "input": {}}], "content[0].type"),
        ("assistant", [{"type": "tool_result", "tool_use_id": "a"}], "content[0].type"),
        ("user", [{"type": "thinking", "thinking": "", "signature": ""}], "content[0].type"),
    ],
)
def test_a_wrong_shape_is_refused_by_its_field(role: str, content: Any, field: str) -> None:
    with pytest.raises(MessageError) as caught:
        _parse(role, content)
    assert caught.value.details["field"] == field
