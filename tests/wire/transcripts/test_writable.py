"""Transcripts written again: what is not touched stays, what is touched stays in order."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import TranscriptError
from ctxgc.invariants import groups
from ctxgc.wire.transcripts import Addition, Revision, open_writable, writable
from ctxgc.wire.transcripts.transcript import read_whole
from tests.session_files import SESSION, all_files, chat, dumped

FILES = all_files()
names = pytest.mark.parametrize("name", sorted(FILES))


@names
def test_an_empty_revision_changes_no_byte(name: str) -> None:
    assert writable(FILES[name]).write(Revision()) == FILES[name]


@names
def test_the_window_is_in_the_wire_format_of_its_agent(name: str) -> None:
    file = writable(FILES[name])
    assert all(entry.message() is not None for entry in file.entries)
    assert {entry.format for entry in file.entries} == {file.format}
    known = {"claude_code": SESSION, "codex": SESSION, "plain": None}
    assert file.session_id == known[file.kind]


@names
@given(data=st.data())
def test_what_is_written_reads_as_what_was_meant(name: str, data: st.DataObject) -> None:
    """Any groups leave, any other entry says something else: the new window is exactly the rest."""
    file = writable(FILES[name])
    parsed = [message for entry in file.entries if (message := entry.message()) is not None]
    chosen_groups = data.draw(st.frozensets(st.sampled_from(groups(parsed)[1:-1])))
    gone = frozenset(file.entries[place].message_id for group in chosen_groups for place in group)
    kept = [entry for entry in file.entries if entry.message_id not in gone]
    chosen = data.draw(st.sampled_from([kept[0], kept[-1]]))
    edited = {chosen.message_id: {**chosen.data, "content": "another text"}}
    again = writable(file.write(Revision(gone=gone, edited=edited)))
    wanted = [edited.get(entry.message_id, entry.data) for entry in kept]
    assert [entry.data for entry in again.entries] == wanted


@names
@pytest.mark.parametrize("place", [5, None])
def test_what_is_added_stands_where_it_should(name: str, place: int | None) -> None:
    file = writable(FILES[name])
    note = (
        file.entries[1].data if file.format == "responses" else {"role": "user", "content": "Note."}
    )
    before = None if place is None else file.entries[place].message_id
    again = writable(file.write(Revision(added=(Addition(before, note),))))
    wanted = [entry.data for entry in file.entries]
    wanted.insert(len(wanted) if place is None else place, note)
    assert [entry.data for entry in again.entries] == wanted


def test_a_document_keeps_its_layout() -> None:
    for layout in ({"indent": 2}, {"indent": "\t"}, {}, {"separators": (",", ":")}):
        data = json.dumps({"model": "m", "messages": chat(1), "n": 1}, **layout).encode()
        assert writable(data).write(Revision()) == data


def test_damaged_lines_and_line_endings_stay() -> None:
    first, *rest = dumped(chat(1)).splitlines()
    data = first + b"\r\n" + b"{broken\n" + b"\n" + b"\n".join(rest)
    file = writable(data)
    assert file.write(Revision()) == data
    edited = {file.entries[0].message_id: {"role": "system", "content": "x"}}
    assert file.write(Revision(edited=edited)).startswith(
        b'{"role":"system","content":"x"}\r\n{broken\n\n'
    )


def test_packed_files_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl.gz"
    path.write_bytes(gzip.compress(FILES["chat.jsonl"]))
    assert read_whole(path) == FILES["chat.jsonl"]
    assert len(open_writable(path).entries) == len(chat())


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"[]", b"{}", b'{"messages": []}', b'{"messages": [{"role"']
)
def test_what_is_no_transcript_is_refused(data: bytes) -> None:
    with pytest.raises(TranscriptError):
        writable(data)
