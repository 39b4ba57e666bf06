"""What compactions removed, and where a phrase came from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxgc.errors import InputError
from ctxgc.insight import (
    SessionFollower,
    open_transcript,
    session_compactions,
    trace_phrase,
)
from tests.session_files import ClaudeCode, codex, dumped
from tests.wire.transcripts import made


def talk() -> ClaudeCode:
    """Two windows: a request and two files before the compaction, a claim and one file again after it."""
    file = ClaudeCode()
    file.user("How fast is it? Stay under 40 ms.")
    file.read(1)
    file.read(2)
    file.block("msg_a", {"type": "text", "text": "Reading is done."})
    boundary = {"trigger": "auto", "preTokens": 9_000}
    file.line(
        "system", subtype="compact_boundary", content="x", compactMetadata=boundary, parent=None
    )
    file.user("Summary: the user asks how fast it is.", isCompactSummary=True)
    file.user("<system-reminder>\nYour todo list is empty.</system-reminder>", isMeta=True)
    file.user("Go on.")
    call = {"type": "tool_use", "id": "toolu_b", "name": "Bash", "input": {"command": "bench"}}
    file.block("msg_b", call)
    file.result("toolu_b", "mean_time_ms: 12.5\nruns: 300", {"stdout": ""})
    file.read(1)
    file.block("msg_c", {"type": "text", "text": "It takes 12.5ms, 3.2x faster than\nbefore."})
    return file


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(dumped(talk().lines))
    return path


def test_a_compaction_tells_what_did_not_come_over(session: Path) -> None:
    (found,) = session_compactions(open_transcript(session))
    assert (found.number, found.line, found.trigger) == (1, 9, "auto")
    assert [part.text for part in found.asked] == ["How fast is it? Stay under 40 ms."]
    assert [(file.path, file.used_again) for file in found.files] == [
        ("/repo/src/m1.py", 1),
        ("/repo/src/m2.py", 0),
    ]
    assert {part.who for part in found.removed} == {"user", "thinking", "call", "result", "model"}
    assert found.tokens_removed == sum(part.tokens for part in found.removed)
    assert found.by_who["result"] == sum(file.tokens for file in found.files)


def test_what_the_next_window_begins_with_is_not_removed(session: Path) -> None:
    (found,) = session_compactions(open_transcript(session))
    texts = [part.text for part in found.removed]
    assert not any("Summary" in text or "todo list" in text or text == "Go on." for text in texts)
    assert 0 < found.tokens_brought < 40


def test_messages_that_a_compaction_keeps_are_not_removed(session: Path) -> None:
    lines = talk().lines
    (about,) = [line["compactMetadata"] for line in lines if "compactMetadata" in line]
    about["preservedMessages"] = {"uuids": [lines[0]["uuid"], lines[7]["uuid"]]}
    session.write_bytes(dumped(lines))
    (found,) = session_compactions(open_transcript(session))
    assert found.asked == []
    assert "Reading is done." not in [part.text for part in found.removed]


def test_the_window_before_a_compaction_is_what_watch_showed_right_before_it(
    tmp_path: Path,
) -> None:
    lines = made.claude_code(made.conversation(turns=12, lines=60), compact_after=8)
    whole = made.write_lines(tmp_path / "a.jsonl", lines)
    (found,) = session_compactions(open_transcript(whole))
    before = SessionFollower(made.write_lines(tmp_path / "b.jsonl", lines[: found.line - 1]))
    before.look()
    assert found.tokens_before == before.fill().tokens


def test_a_rollout_of_codex_tells_it_too(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(codex())
    (found,) = session_compactions(open_transcript(path))
    assert [(part.who, part.text) for part in found.removed] == [
        ("user", "Gone with the compaction.")
    ]


def test_a_session_without_compactions_has_none(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([{"role": "user", "content": "hi"}]))
    assert session_compactions(open_transcript(path)) == []


def test_what_a_user_or_a_result_said_first_came_from_there(session: Path) -> None:
    asked = trace_phrase(session, "HOW fast\nis it")
    assert asked.origin is not None
    assert (asked.origin.who, asked.origin.line, asked.origin.in_window) == ("user", 1, False)
    assert [place.who for place in asked.found] == ["user"]
    measured = trace_phrase(session, "mean_time_ms: 12.5")
    assert measured.origin is not None
    assert (measured.origin.who, measured.origin.about) == ("result", "Bash bench")
    assert measured.origin.in_window
    assert measured.names == []


def test_names_and_numbers_of_what_the_model_said_first_are_looked_for_before_it(
    session: Path,
) -> None:
    found = trace_phrase(session, "It takes 12.5ms, 3.2x faster than before")
    assert [place.who for place in found.found] == ["model"]
    assert found.origin is None
    origins = {
        each.name: each.origin and (each.origin.who, each.origin.line) for each in found.names
    }
    assert origins == {"12.5": ("result", 14), "3.2": None}


def test_part_of_a_number_is_not_the_number(session: Path) -> None:
    file = talk()
    file.block("msg_d", {"type": "text", "text": "Only 2.5 ms, in 300.7 runs."})
    session.write_bytes(dumped(file.lines))
    found = trace_phrase(session, "Only 2.5 ms, in 300.7 runs")
    assert [(each.name, each.origin) for each in found.names] == [("2.5", None), ("300.7", None)]


def test_what_nobody_said_has_the_nearest_lines(session: Path) -> None:
    found = trace_phrase(session, "the user asks how slow it is")
    assert (found.found, found.origin) == ([], None)
    assert (found.near[0].who, found.near[0].share) == ("summary", 0.86)
    assert trace_phrase(session, "zebra crossings").near == []


def test_subagents_with_files_of_their_own_are_searched(session: Path) -> None:
    side = ClaudeCode()
    side.user("Find all callers.", isSidechain=True, parent=None)
    call = {"type": "tool_use", "id": "toolu_s", "name": "Bash", "input": {"command": "rg f"}}
    side.block("msg_s", call, isSidechain=True)
    side.result("toolu_s", "seventeen callers", {"stdout": ""}, isSidechain=True)
    folder = session.parent / session.stem / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-1.jsonl").write_bytes(dumped(side.lines))
    (found,) = trace_phrase(session, "seventeen callers").found
    assert (found.who, found.window, found.in_window) == ("result", 0, False)
    assert Path(found.file).name == "agent-1.jsonl"
    assert [place.who for place in trace_phrase(session, "Find all callers.").found] == ["call"]


def test_a_blank_phrase_is_an_error(session: Path) -> None:
    with pytest.raises(InputError, match="blank"):
        trace_phrase(session, " \n")
