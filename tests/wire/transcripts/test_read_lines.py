"""Transcripts are read line by line, from any offset, whatever stands in them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.wire.transcripts import TranscriptEntry, read_lines

CLAUDE: dict[str, Any] = {
    "sessionId": "s1",
    "uuid": "u1",
    "type": "user",
    "isSidechain": False,
    "timestamp": "2026-01-02T03:04:05.678Z",
    "message": {"role": "user", "content": "fix it"},
}


def _lines(*objects: Any) -> bytes:
    return b"".join(json.dumps(o).encode() + b"\n" for o in objects)


def test_a_line_of_claude_code_is_an_entry_with_its_uuid_and_time() -> None:
    data = _lines(CLAUDE)
    read = read_lines(data)
    assert read.entries == [
        TranscriptEntry(
            message_id="u1",
            data={"role": "user", "content": "fix it"},
            format="anthropic",
            written_at=datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC),
        )
    ]
    assert (read.used, read.passed_over, read.broken) == (len(data), 0, 0)


def test_what_says_nothing_to_the_main_conversation_is_passed_over() -> None:
    read = read_lines(
        _lines(
            {"type": "summary", "summary": "a title", "leafUuid": "x"},
            {**CLAUDE, "uuid": "u2", "isSidechain": True},
            {**CLAUDE, "uuid": "u3", "type": "system", "content": "limit reached"},
            {**CLAUDE, "uuid": "u4", "message": {"role": "user", "content": ""}},
            {**CLAUDE, "uuid": "u5", "message": "odd"},
            {"neither": "this nor that"},
        )
    )
    assert (read.entries, read.passed_over, read.broken) == ([], 6, 0)


def test_a_plain_transcript_is_read_in_the_format_of_its_messages() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    read = read_lines(
        _lines(
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        )
    )
    messages = [entry.message() for entry in read.entries]
    assert [m.role for m in messages if m is not None] == ["assistant", "tool"]
    assert {entry.format for entry in read.entries} == {"openai"}


def test_equal_lines_at_two_places_are_two_entries() -> None:
    read = read_lines(
        _lines({"role": "user", "content": "yes"}, {"role": "user", "content": "yes"})
    )
    assert len({entry.message_id for entry in read.entries}) == 2


def test_a_line_that_its_writer_has_not_finished_is_left_for_later() -> None:
    whole, part = _lines(CLAUDE), b'{"uuid": "u2", "sess'
    assert read_lines(whole + part, is_end=True).used == len(whole)
    unended = json.dumps({**CLAUDE, "uuid": "u2"}).encode()
    assert read_lines(whole + unended).used == len(whole)
    assert len(read_lines(whole + unended, is_end=True).entries) == 2


def test_broken_lines_are_counted_and_do_no_harm() -> None:
    data = b'\n{"uuid": \n\xff\xfe\n[1, 2]\n' + b"[" * 100_000 + b"\n" + _lines(CLAUDE)
    read = read_lines(data)
    assert (len(read.entries), read.broken, read.used) == (1, 4, len(data))


def test_a_message_of_no_known_shape_has_no_parts() -> None:
    (entry,) = read_lines(_lines({**CLAUDE, "message": {"role": "user", "content": [7]}})).entries
    assert entry.message() is None


@given(st.lists(st.binary(max_size=40).filter(lambda b: b"\n" not in b)), st.integers(0, 400))
def test_a_file_read_in_two_pieces_says_the_same_as_in_one(raw: list[bytes], cut: int) -> None:
    lines = [json.dumps({**CLAUDE, "uuid": f"u{n}"}).encode() for n in range(3)]
    data = b"\n".join([*raw, *lines, *raw]) + b"\n"
    whole = read_lines(data, is_end=True)
    first = read_lines(data[:cut])
    rest = read_lines(data[first.used :], offset=first.used, is_end=True)
    assert [*first.entries, *rest.entries] == whole.entries
    assert first.used + rest.used == whole.used == len(data)
