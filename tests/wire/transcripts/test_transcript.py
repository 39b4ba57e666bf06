"""Transcripts of every agent open by their content, and damage is told, never fatal."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ctxgc
from ctxgc.errors import TranscriptError
from ctxgc.wire.transcripts import (
    Compaction,
    Damage,
    TranscriptEntry,
    Usage,
    lines,
    open_transcript,
)
from tests.wire.transcripts import made
from tools.requirement_scan import ROOT

REAL = ROOT.parent / "shared" / "data" / "claude_code_raw"
STEPS = made.conversation(turns=4, lines=12)
KINDS = {
    "claude_code": ("claude_code", "anthropic", "lines"),
    "codex": ("codex", "responses", "lines"),
    "chat": ("plain", "openai", "list"),
    "chat_lines": ("plain", "openai", "lines"),
    "responses": ("plain", "responses", "input"),
    "anthropic": ("plain", "anthropic", "messages"),
}


@pytest.mark.parametrize("name", made.EVERY_FORMAT)
def test_every_format_is_known_by_its_content_and_gives_a_valid_view(
    name: str, tmp_path: Path
) -> None:
    transcript = open_transcript(made.write_format(name, tmp_path, STEPS))
    assert (transcript.kind, transcript.format, transcript.shape) == KINDS[name]
    view = [message.data for message in transcript.view()]
    assert ctxgc.validate(view, transcript.format) == []
    assert transcript.damage == []
    said = json.dumps(view)
    assert all(step.said in said for step in STEPS)


@pytest.mark.parametrize("name", made.EVERY_FORMAT)
def test_a_packed_file_reads_as_the_plain_one(name: str, tmp_path: Path) -> None:
    path = made.write_format(name, tmp_path, STEPS)
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert open_transcript(packed).view() == open_transcript(path).view()


def test_messages_carry_their_lines_and_times(tmp_path: Path) -> None:
    path = made.write_lines(tmp_path / "a", made.claude_code(STEPS))
    entries = list(open_transcript(path).entries())
    raw = path.read_text(encoding="utf-8").splitlines()
    for entry in entries:
        line = json.loads(raw[entry.line - 1])
        assert line["uuid"] == entry.message_id
        assert line["message"]["content"] == entry.data["content"]
        assert entry.written_at is not None


def test_blocks_of_one_answer_are_one_message_with_its_results_behind_it(tmp_path: Path) -> None:
    view = open_transcript(made.write_lines(tmp_path / "a", made.claude_code(STEPS))).view()
    answer, results = view[1], view[2]
    assert [block["type"] for block in answer.data["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["tool_use_id"] for block in results.data["content"]] == [
        "toolu_0000",
        "toolu_0001",
    ]
    assert (answer.lines, results.lines) == ((3, 4, 5), (6, 7))


def test_after_a_compaction_the_view_begins_with_the_summary(tmp_path: Path) -> None:
    for name, lines_ in (
        ("claude", made.claude_code(STEPS, compact_after=2)),
        ("codex", made.codex(STEPS, compact_after=2)),
    ):
        transcript = open_transcript(made.write_lines(tmp_path / name, lines_))
        view = transcript.view()
        assert view[0].is_summary
        assert "BUG-1" not in json.dumps([message.data for message in view])
        assert "BUG-2" in json.dumps([message.data for message in view])
        assert sum(isinstance(item, Compaction) for item in transcript.items()) == 1
        assert ctxgc.validate([m.data for m in view], transcript.format) == []


def test_messages_that_a_compaction_kept_stand_behind_its_summary(tmp_path: Path) -> None:
    lines_ = made.claude_code(STEPS, compact_after=2)
    at = next(n for n, line in enumerate(lines_) if line.get("subtype") == "compact_boundary")
    kept = lines_[at - 1]["uuid"]
    lines_[at]["compactMetadata"]["preservedMessages"] = {"uuids": [kept]}
    view = open_transcript(made.write_lines(tmp_path / "a", lines_)).view()
    assert [message.message_ids for message in view[:2]] == [
        (lines_[at + 1]["uuid"],),
        (kept,),
    ]


def test_a_branch_that_was_left_is_not_in_the_view(tmp_path: Path) -> None:
    lines_ = made.claude_code(STEPS[:5])
    again = {
        **lines_[-1],
        "uuid": "other",
        "parentUuid": lines_[1]["uuid"],
        "message": {"id": "msg_x", "role": "assistant", "content": "another way"},
    }
    view = open_transcript(made.write_lines(tmp_path / "a", [*lines_, again])).view()
    assert [message.data["content"] for message in view] == [
        "Please fix BUG-0 in src/cart.py.",
        "another way",
    ]


def test_turns_that_were_rolled_back_are_gone(tmp_path: Path) -> None:
    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 2}}
    view = open_transcript(made.write_lines(tmp_path / "a", [*made.codex(STEPS), back])).view()
    said = json.dumps([message.data for message in view])
    assert "BUG-1" in said
    assert "BUG-2" not in said


def test_a_subagents_talk_is_marked_and_stays_out_of_the_view(tmp_path: Path) -> None:
    path = made.write_lines(tmp_path / "a", made.claude_code(STEPS, subagent=True))
    transcript = open_transcript(path)
    side = [i for i in transcript.items() if isinstance(i, TranscriptEntry) and i.is_side]
    assert side[0].data["content"] == "Look for prices."
    assert "Look for prices." not in json.dumps([m.data for m in transcript.view()])


def test_usage_is_told_once_for_each_request(tmp_path: Path) -> None:
    for lines_ in (made.claude_code(STEPS), made.codex(STEPS)):
        transcript = open_transcript(made.write_lines(tmp_path / "a", lines_))
        usages = {i.reply_id: i for i in transcript.items() if isinstance(i, Usage)}
        assert len(usages) == 16
        assert all(usage.prompt >= 3_000 and usage.output == 40 for usage in usages.values())


def test_the_session_says_who_and_where_it_is(tmp_path: Path) -> None:
    transcript = open_transcript(made.write_lines(tmp_path / "a", made.codex(STEPS)))
    list(transcript.items())
    facts = transcript.facts
    assert (facts.session_id, facts.project, facts.model) == (made.SESSION, made.PROJECT, "gpt-5")
    assert (facts.context_limit, facts.system) == (258_400, made.SYSTEM)


# -- damage -----------------------------------------------------------------------------------------


def test_damaged_lines_are_reported_with_their_numbers_and_the_rest_is_read(tmp_path: Path) -> None:
    whole = [json.dumps(line).encode() for line in made.claude_code(STEPS)]
    bad = [*whole[:2], b"{broken", b"\0\0\0", b'["a list"]', *whole[2:], whole[1][:40]]
    path = tmp_path / "a"
    path.write_bytes(b"\n".join(bad))
    transcript = open_transcript(path)
    assert len(transcript.view()) == 32
    assert transcript.damage == [
        Damage(line=3, what="not JSON"),
        Damage(line=4, what="only NUL bytes"),
        Damage(line=5, what="not a JSON object"),
        Damage(
            line=len(bad),
            what="cut off: its writer has not finished it, or the file was truncated",
        ),
    ]
    assert transcript.damaged == 4


def test_lines_with_nul_or_foreign_bytes_are_read_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(
        b'{"role": "user", "content": "a\xffb"}\n'
        b'\0\0{"role": "assistant", "content": "c"}\n'
        b'{"role": "user", "content": "\\ud800"}\n'
    )
    transcript = open_transcript(path)
    assert [m.data["content"] for m in transcript.view()] == ["a�b", "c", "\ud800"]
    assert [(d.line, d.is_lost) for d in transcript.damage] == [(1, False), (2, False)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_other_encodings_are_read_where_a_mark_tells_them(encoding: str, tmp_path: Path) -> None:
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in made.chat(STEPS))
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    path = tmp_path / "a"
    path.write_bytes(mark + text.encode(encoding))
    assert [m.data for m in open_transcript(path).view()] == made.chat(STEPS)


def test_a_line_that_is_too_long_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines.numbered, "__defaults__", (200,))
    long = {"role": "user", "content": "x" * 5_000}
    short = {"role": "user", "content": "y"}
    transcript = open_transcript(made.write_lines(tmp_path / "a", [short, long, short]))
    assert [m.lines for m in transcript.view()] == [(1,), (3,)]
    assert transcript.damage == [Damage(line=2, what="longer than 200 bytes")]


def test_a_packed_file_that_was_cut_gives_what_is_before_the_cut(tmp_path: Path) -> None:
    path = made.write_lines(tmp_path / "a.gz", made.chat(made.conversation(40)))
    path.write_bytes(path.read_bytes()[:-60])
    transcript = open_transcript(path)
    assert len(transcript.view()) > 100
    assert transcript.damage[-1].what.startswith("the compressed file ends or breaks here")


@pytest.mark.parametrize(
    "data", [b"", b"hello\n", b"{}", b"[]", b'{"a": 1}\n', b"\x28\xb5\x2f\xfd..", b"\x1f\x8b.."]
)
def test_what_is_no_transcript_is_a_typed_error_with_a_next_step(
    data: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    path.write_bytes(data)
    with pytest.raises(TranscriptError) as caught:
        open_transcript(path)
    assert caught.value.hint
    assert caught.value.details["path"] == str(path)


def test_a_missing_file_and_a_folder_are_typed_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(TranscriptError):
            open_transcript(path)


# -- documents --------------------------------------------------------------------------------------

MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant"]), "content": st.text(max_size=30)},
        optional={
            "x": st.recursive(
                st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=10
            )
        },
    ),
    min_size=1,
    max_size=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=MESSAGES, indent=st.sampled_from([None, 1, 4]), wrapped=st.booleans())
def test_a_document_is_cut_into_the_messages_that_it_holds(
    messages: list[dict[str, Any]], indent: int | None, wrapped: bool, tmp_path: Path
) -> None:
    beside = {"model": "gpt-4o", "n": 1.5, "stop": None, "meta": {"messages": ["]"]}}
    value = {**beside, "messages": messages, "last": True} if wrapped else messages
    transcript = open_transcript(made.write_json(tmp_path / "a", value, indent))
    assert [m.data for m in transcript.view()] == messages
    assert transcript.fields == ({**beside, "last": True} if wrapped else {})
    assert transcript.damage == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(min_value=40, max_value=2_000))
def test_of_a_document_without_its_end_the_whole_messages_are_read(
    cut: int, tmp_path: Path
) -> None:
    messages = made.chat(STEPS)
    text = json.dumps({"messages": messages})
    path = tmp_path / "a"
    path.write_text(text[:-cut], encoding="utf-8")
    transcript = open_transcript(path)
    found = [m.data for m in transcript.view()]
    assert found == messages[: len(found)]
    assert transcript.damaged == 1


# -- real ones --------------------------------------------------------------------------------------


@pytest.mark.skipif(not REAL.is_dir(), reason="the recorded sessions are not on this machine")
def test_real_sessions_give_valid_views_without_damage() -> None:
    for path in sorted(REAL.glob("*.jsonl.gz")):
        transcript = open_transcript(path)
        view = transcript.view()
        assert ctxgc.validate([m.data for m in view], "anthropic") == []
        assert transcript.damage == []
        assert transcript.facts.session_id == path.name.removesuffix(".jsonl.gz")
