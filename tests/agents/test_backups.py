"""In place, and back."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from ctxgc import files
from ctxgc.agents import (
    BACKUP_FOLDER,
    backups,
    backups_of,
    newest_backup,
    restore_backup,
    write_in_place,
)
from ctxgc.agents.backups import file_state
from ctxgc.errors import InputError, StoreError, TranscriptBusyError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"one\ntwo\n")
    past = time.time() - 60
    os.utime(path, (past, past))
    path.chmod(0o640)
    return path


def test_the_original_comes_back_byte_for_byte(file: Path) -> None:
    backup = write_in_place(file, b"one\ntwo\n", b"one\n", file_state(file))
    assert file.read_bytes() == b"one\n"
    assert backup.original.read_bytes() == b"one\ntwo\n"
    assert restore_backup(backup) == 0
    assert file.read_bytes() == b"one\ntwo\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert list((file.parent / BACKUP_FOLDER).iterdir()) == []


def test_what_came_since_stays_behind_the_original(file: Path) -> None:
    backup = write_in_place(file, b"one\ntwo\n", b"one\n", file_state(file))
    with file.open("ab") as agent:
        agent.write(b"three\n")
    assert restore_backup(backup) == 6
    assert file.read_bytes() == b"one\ntwo\nthree\n"


def test_several_prunings_are_undone_one_by_one(file: Path) -> None:
    write_in_place(file, b"one\ntwo\n", b"one\n", file_state(file))
    write_in_place(file, b"one\n", b"o\n", file_state(file))
    assert [known.number for known in backups_of(file)] == [1, 2]
    restore_backup(backups_of(file)[-1])
    restore_backup(backups_of(file)[-1])
    assert file.read_bytes() == b"one\ntwo\n"


def test_a_file_that_changed_otherwise_is_left_alone(file: Path) -> None:
    backup = write_in_place(file, b"one\ntwo\n", b"one\n", file_state(file))
    file.write_bytes(b"ONE\n")
    with pytest.raises(InputError, match="changed in another way since"):
        restore_backup(backup)
    assert file.read_bytes() == b"ONE\n"


def test_a_damaged_or_missing_backup_is_never_put_back(file: Path) -> None:
    backup = write_in_place(file, b"one\ntwo\n", b"one\n", file_state(file))
    backup.original.write_bytes(b"one\ntwO\n")
    with pytest.raises(InputError, match="is damaged"):
        restore_backup(backup)
    backup.original.unlink()
    with pytest.raises(StoreError):
        restore_backup(backup)
    assert file.read_bytes() == b"one\n"


def test_a_document_that_grew_cannot_be_put_together(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_bytes(b"[1,2]")
    backup = write_in_place(path, b"[1,2]", b"[1]", file_state(path))
    path.write_bytes(b"[1] ")
    with pytest.raises(InputError, match="grew since"):
        restore_backup(backup)


def test_a_file_that_its_agent_wrote_meanwhile_is_not_replaced(file: Path) -> None:
    seen = file_state(file)
    file.write_bytes(b"one\ntwo\nthree\n")
    with pytest.raises(TranscriptBusyError):
        write_in_place(file, b"one\ntwo\n", b"one\n", seen)
    assert file.read_bytes() == b"one\ntwo\nthree\n"


def test_a_pruning_that_was_refused_leaves_no_backup_before_the_true_one(file: Path) -> None:
    seen = file_state(file)
    first = write_in_place(file, b"one\ntwo\n", b"one\n", seen)
    with pytest.raises(TranscriptBusyError):
        write_in_place(file, b"one\ntwo\n", b"two\n", seen)
    assert newest_backup([file.parent]) == first
    assert sorted((file.parent / BACKUP_FOLDER).iterdir()) == sorted(
        [first.original, first.receipt]
    )


@pytest.mark.parametrize("moment", ["before", "after"])
def test_who_is_interrupted_can_undo_what_was_done_and_nothing_else(
    file: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    real = backups.write_atomic

    def interrupted(path: Path, data: bytes, **options: Any) -> None:
        if path != file or moment == "after":
            real(path, data, **options)
        if path == file:
            raise KeyboardInterrupt

    monkeypatch.setattr(backups, "write_atomic", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_in_place(file, b"one\ntwo\n", b"one\n", file_state(file))
    monkeypatch.undo()
    assert len(backups_of(file)) == (moment == "after")
    for known in backups_of(file):
        restore_backup(known)
    assert file.read_bytes() == b"one\ntwo\n"


def test_two_that_prune_at_once_keep_a_backup_each(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, found = file_state(file), backups.backups_of

    def another_is_faster(path: Path) -> list[backups.Backup]:
        known = found(path)
        monkeypatch.undo()
        write_in_place(file, b"one\ntwo\n", b"one\n", seen)
        return known

    monkeypatch.setattr(backups, "backups_of", another_is_faster)
    with pytest.raises(TranscriptBusyError):
        write_in_place(file, b"one\ntwo\n", b"two\n", seen)
    (first,) = backups_of(file)
    assert (first.number, file.read_bytes()) == (1, b"one\n")
    assert restore_backup(first) == 0
    assert file.read_bytes() == b"one\ntwo\n"


def test_the_newest_backup_of_several_folders_is_found(file: Path, tmp_path: Path) -> None:
    assert newest_backup([tmp_path]) is None
    write_in_place(file, b"one\ntwo\n", b"one\n", file_state(file))
    other = tmp_path / "other" / "b.jsonl"
    other.parent.mkdir()
    other.write_bytes(b"x")
    made = write_in_place(other, b"x", b"", file_state(other))
    (tmp_path / BACKUP_FOLDER / "broken.json").write_bytes(b"{")
    assert newest_backup([tmp_path, other.parent]) == made


def appending_once(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    """Let the agent add a line as soon as the new file is on the disk."""
    written = files._write_new

    def write_and_be_late(path: Path, data: bytes, after: int = 0) -> None:
        written(path, data, after)
        if path.name.startswith(f".{file.name}."):
            with file.open("ab") as end:
                end.write(b"late\n")

    monkeypatch.setattr(files, "_write_new", write_and_be_late)


def test_a_line_added_while_the_new_file_was_written_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(b"one\ntwo\n")
    appending_once(monkeypatch, file)
    with pytest.raises(TranscriptBusyError):
        write_in_place(file, b"one\ntwo\n", b"one\n", file_state(file))
    assert file.read_bytes() == b"one\ntwo\nlate\n"


def test_a_line_added_while_the_original_was_put_back_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "session.jsonl"
    file.write_bytes(b"one\ntwo\n")
    backup = write_in_place(file, b"one\ntwo\n", b"one\n", file_state(file))
    appending_once(monkeypatch, file)
    with pytest.raises(TranscriptBusyError):
        restore_backup(backup)
    assert file.read_bytes() == b"one\nlate\n"


def test_a_link_to_a_transcript_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    file.write_bytes(b"one\ntwo\n")
    link.symlink_to(file)
    backup = write_in_place(link, b"one\ntwo\n", b"one\n", file_state(link))
    assert (link.is_symlink(), file.read_bytes()) == (True, b"one\n")
    restore_backup(backup)
    assert (link.is_symlink(), file.read_bytes()) == (True, b"one\ntwo\n")
