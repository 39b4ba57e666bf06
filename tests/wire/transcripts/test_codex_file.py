"""Codex's rollouts: the window that a compaction brings, and the session's id."""

from __future__ import annotations

import json

from ctxgc.wire.transcripts import Addition, Revision
from ctxgc.wire.transcripts.codex import CodexFile
from tests.reported_files import codex_usage, reported_codex
from tests.session_files import OTHER, codex, dumped


def test_the_window_begins_with_the_history_of_the_last_compaction() -> None:
    texts = [json.dumps(entry.data) for entry in CodexFile(codex()).entries]
    assert "An earlier request, summed up." in texts[0]
    assert not any("Gone with the compaction." in text for text in texts)


def test_items_inside_a_compaction_can_change_leave_and_get_company() -> None:
    file = CodexFile(codex())
    inside = file.entries[0]
    note = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Note."}]}
    added = (Addition(inside.message_id, note),)

    def history(revision: Revision) -> list[object]:
        lines = map(json.loads, file.write(revision).splitlines())
        return next(x["payload"]["replacement_history"] for x in lines if x["type"] == "compacted")

    assert history(Revision(added=added)) == [note, inside.data]
    assert history(Revision(edited={inside.message_id: note})) == [note]
    assert history(Revision(gone=frozenset([inside.message_id]))) == []


def test_a_summary_without_items_is_left_alone() -> None:
    lines = [json.loads(line) for line in codex().splitlines()]
    lines[2]["payload"] = {"message": "Only words."}
    data = dumped(lines)
    file = CodexFile(data)
    assert file.entries[0].message_id == "line-5"
    assert file.write(Revision()) == data


def test_a_copy_has_its_own_session_id() -> None:
    written = CodexFile(codex()).write(Revision(), OTHER)
    before, after = codex().splitlines(), written.splitlines()
    assert json.loads(after[0])["payload"] == {
        "id": OTHER,
        "cwd": "/repo",
        "cli_version": "0.166.0",
    }
    assert after[1:] == before[1:]
    assert CodexFile(written).session_id == OTHER


def counts(data: bytes) -> list[dict[str, object]]:
    payloads = [json.loads(line)["payload"] for line in data.splitlines()]
    return [p["info"]["last_token_usage"] for p in payloads if p.get("type") == "token_count"]


def test_the_newest_count_is_lowered_wherever_it_is_written() -> None:
    data = reported_codex()
    file = CodexFile(data)
    last = file.usages[-1].prompt
    *before, one, two = counts(file.write(Revision(reported=12_000)))
    assert before == counts(data)[:-2]
    shorter = {**codex_usage(12_000), "cached_input_tokens": 11_500}
    assert [one, two] == [shorter, shorter]
    *_, bare = counts(file.write(Revision(reported=300)))
    assert bare == {
        **codex_usage(300),
        "cached_input_tokens": 0,
        "cache_write_input_tokens": 200,
    }
    assert file.write(Revision(reported=last)) == data


def test_counts_before_a_compaction_are_not_of_the_window() -> None:
    lines = [json.loads(line) for line in reported_codex().splitlines()]
    told = [line for line in lines if line["payload"].get("type") == "token_count"]
    file = CodexFile(dumped([lines[0], *told, *lines[1:5]]))
    assert file.usages == []
    assert file.write(Revision(reported=5)) == dumped([lines[0], *told, *lines[1:5]])


def _talk(*lines: tuple[str, dict[str, object]]) -> bytes:
    at = "2026-03-02T09:00:00.000Z"
    return dumped([{"timestamp": at, "type": kind, "payload": said} for kind, said in lines])


def _said(role: str, text: str) -> tuple[str, dict[str, object]]:
    kind = "input_text" if role == "user" else "output_text"
    content = [{"type": kind, "text": text}]
    return "response_item", {"type": "message", "role": role, "content": content}


def _told(**last: object) -> tuple[str, dict[str, object]]:
    return "event_msg", {"type": "token_count", "info": {"last_token_usage": last}}


def test_what_was_reported_for_a_turn_that_was_taken_back_does_not_count() -> None:
    file = CodexFile(
        _talk(
            ("session_meta", {"id": OTHER}),
            _said("user", "one"), _said("assistant", "1"), _told(input_tokens=8_000),
            _said("user", "two"), _said("assistant", "2"), _told(input_tokens=150_000),
            ("event_msg", {"type": "thread_rolled_back", "num_turns": 1}),
            _said("user", "three"),
        )
    )  # fmt: skip
    assert [usage.prompt for usage in file.usages] == [8_000]
    assert [c["input_tokens"] for c in counts(file.write(Revision(reported=5)))] == [8_000, 5]


def test_a_count_is_lowered_as_it_is_read_and_gets_no_field_that_it_did_not_have() -> None:
    odd = {"input_tokens": 10, "cached_input_tokens": 900, "cache_write_input_tokens": 100}
    file = CodexFile(
        _talk(
            ("session_meta", {"id": OTHER}), _said("user", "one"), _said("assistant", "1"),
            _told(**odd),
        )
    )  # fmt: skip
    assert [usage.prompt for usage in file.usages] == [1_000]
    written = file.write(Revision(reported=700))
    assert counts(written) == [
        {"input_tokens": 700, "cached_input_tokens": 600, "cache_write_input_tokens": 100}
    ]
    assert [usage.prompt for usage in CodexFile(written).usages] == [700]
