"""A session of one agent, converted, is one that the other agent wrote."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ctxgc.errors import TranscriptError
from ctxgc.wire import validate
from ctxgc.wire.transcripts import (
    AgentKind,
    ConvertedTranscript,
    RecordedMessage,
    convert_transcript,
    open_transcript,
)
from tests.session_files import ClaudeCode, claude_code, codex, dumped

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)
NEW = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"


def converted(folder: Path, data: bytes, to: AgentKind) -> ConvertedTranscript:
    (folder / "old.jsonl").write_bytes(data)
    return convert_transcript(
        open_transcript(folder / "old.jsonl"), to, session_id=NEW, project="/repo", at=NOW
    )


def view(folder: Path, data: bytes) -> list[RecordedMessage]:
    (folder / "new.jsonl").write_bytes(data)
    return open_transcript(folder / "new.jsonl").view()


def said(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": arguments}


def test_text_calls_and_results_arrive_as_items_of_codex(tmp_path: Path) -> None:
    file = ClaudeCode()
    file.user("What is here?")
    file.block("msg_1", {"type": "thinking", "thinking": "hm", "signature": "s"})
    file.block("msg_1", {"type": "text", "text": "I look."})
    file.block("msg_1", call("toolu_1", command="ls"))
    file.result("toolu_1", "README.md", "README.md")
    made = converted(tmp_path, dumped(file.lines), "codex")
    assert [message.data for message in view(tmp_path, made.data)] == [
        said("user", "input_text", "What is here?"),
        said("assistant", "output_text", "I look."),
        {"type": "function_call", "name": "Bash", "arguments": '{"command":"ls"}', "call_id": "toolu_1"},
        {"type": "function_call_output", "call_id": "toolu_1", "output": "README.md"},
    ]  # fmt: skip
    assert (made.messages, made.calls, made.left, made.fixes) == (4, 1, {"thinking": 1}, [])


def test_items_of_codex_arrive_as_messages_of_claude_code(tmp_path: Path) -> None:
    lines = [
        {"type": "session_meta", "payload": {"id": NEW, "cwd": "/repo"}},
        *(
            {"type": "response_item", "payload": item}
            for item in (
                said("developer", "input_text", "Be good."),
                said("user", "input_text", "<environment_context>"),
                said("user", "input_text", "Patch it."),
                {"type": "reasoning", "summary": [], "encrypted_content": "x"},
                {"type": "custom_tool_call", "name": "apply patch", "input": "x y", "call_id": "call:1"},
                {"type": "custom_tool_call_output", "call_id": "call:1", "output": "Done"},
                said("assistant", "output_text", "Patched."),
            )
        ),
    ]  # fmt: skip
    made = converted(tmp_path, dumped(lines), "claude_code")
    patch = {
        "type": "tool_use",
        "id": "call_1",
        "name": "apply_patch",
        "input": {"input": "x y"},
    }
    assert [message.data for message in view(tmp_path, made.data)] == [
        {"role": "user", "content": "Patch it."},
        {"role": "assistant", "content": [patch]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "Done"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Patched."}]},
    ]  # fmt: skip
    assert made.left == {"instructions of the agent": 1, "notes of the agent": 1, "thinking": 1}


@pytest.mark.parametrize("way", [("claude_code", "codex"), ("codex", "claude_code")])
def test_there_and_back_is_the_same_conversation(
    tmp_path: Path, way: tuple[AgentKind, AgentKind]
) -> None:
    source, target = way
    first = converted(tmp_path, (claude_code() if source == "claude_code" else codex()), target)
    there = converted(tmp_path, first.data, source)
    again = converted(tmp_path, there.data, target)
    assert [m.data for m in view(tmp_path, again.data)] == [
        m.data for m in view(tmp_path, first.data)
    ]
    assert there.left == again.left == {}


@pytest.mark.parametrize(("data", "to"), [(claude_code(), "codex"), (codex(), "claude_code")])
def test_the_new_session_is_valid_and_reports_the_last_request(
    tmp_path: Path, data: bytes, to: AgentKind
) -> None:
    made = converted(tmp_path, data, to)
    messages = view(tmp_path, made.data)
    assert validate([m.data for m in messages], messages[0].format) == []
    assert open_transcript(tmp_path / "new.jsonl").kind == to


def test_a_call_without_its_result_is_answered_as_interrupted(tmp_path: Path) -> None:
    file = ClaudeCode()
    file.user("Run it.")
    file.block("msg_1", call("toolu_1", command="make"))
    made = converted(tmp_path, dumped(file.lines), "codex")
    last = view(tmp_path, made.data)[-1].data
    assert (last["type"], last["call_id"]) == ("function_call_output", "toolu_1")
    assert len(made.fixes) == 1


def test_an_image_keeps_its_data_on_both_ways(tmp_path: Path) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    file = ClaudeCode()
    file.line(
        "user",
        message={
            "role": "user",
            "content": [{"type": "text", "text": "See:"}, {"type": "image", "source": source}],
        },
    )
    there = converted(tmp_path, dumped(file.lines), "codex")
    assert view(tmp_path, there.data)[-1].data["content"] == [
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    ]
    back = converted(tmp_path, there.data, "claude_code")
    assert view(tmp_path, back.data)[-1].data["content"][-1] == {"type": "image", "source": source}


def test_ids_that_were_used_twice_name_one_call_each(tmp_path: Path) -> None:
    file = ClaudeCode()
    file.user("Twice.")
    for turn in (1, 2):
        file.block(f"msg_{turn}", call("toolu_1", command=f"echo {turn}"))
        file.result("toolu_1", f"{turn}", f"{turn}")
    made = converted(tmp_path, dumped(file.lines), "codex")
    items = [m.data for m in view(tmp_path, made.data) if "call_id" in m.data]
    assert validate(items, "responses") == []
    assert len({item["call_id"] for item in items}) == 2


def test_a_session_of_the_same_agent_or_of_nobody_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="session of Codex is not converted to Codex"):
        converted(tmp_path, codex(), "codex")
    with pytest.raises(TranscriptError, match="no known agent"):
        converted(tmp_path, b'{"role": "user", "content": "hi"}\n', "codex")


def test_a_session_in_which_no_user_said_anything_is_refused(tmp_path: Path) -> None:
    file = ClaudeCode()
    file.user("<local-command-stdout>bye</local-command-stdout>")
    with pytest.raises(TranscriptError, match="nothing to continue"):
        converted(tmp_path, dumped(file.lines), "codex")
