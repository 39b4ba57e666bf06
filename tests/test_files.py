from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxgc.errors import StoreBusyError, StoreError
from ctxgc.files import (
    FileLock,
    append_durable,
    append_log,
    create_private,
    ensure_directory,
    os_errors,
    remove,
    set_aside,
    write_atomic,
)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_files_and_directories_are_private_whatever_the_umask_says(
    umask: int, tmp_path: Path
) -> None:
    file = tmp_path / "a" / "b" / "file"
    write_atomic(file, b"x")
    create_private(tmp_path / "a" / "other")
    assert [_mode(path) for path in (file.parent.parent, file.parent)] == [0o700, 0o700]
    assert [_mode(path) for path in (file, tmp_path / "a" / "other")] == [0o600, 0o600]


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_atomic(file, b"old")
    write_atomic(file, b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"new"}


@pytest.mark.parametrize("call", ["pwrite", "fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    write_atomic(file, b"old")

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(StoreError) as error:
            write_atomic(file, b"new")
    assert error.value.details == {"path": str(file), "errno": "ENOSPC"}
    assert "disk is full" in error.value.hint
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"old"}


def test_an_append_cuts_off_what_a_crash_left_behind(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"good torn")
    append_durable(file, b"more", 4)
    assert file.read_bytes() == b"goodmore"


def test_an_append_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"good")

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(StoreError, match="cannot append to"):
            append_durable(file, b"more", 4)
    assert file.read_bytes() == b"good"


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, place: real(file, data[:3], place))
    write_atomic(tmp_path / "file", b"0123456789")
    append_durable(tmp_path / "file", b"abcdefgh", 10)
    assert (tmp_path / "file").read_bytes() == b"0123456789abcdefgh"


def test_links_are_not_followed(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_bytes(b"mine")
    link.symlink_to(victim)
    with pytest.raises(StoreError, match="link") as error:
        append_durable(link, b"x", 0)
    assert "symbolic link" in error.value.hint
    with pytest.raises(StoreError):
        FileLock(link, 0).acquire()
    write_atomic(link, b"new")
    assert (victim.read_bytes(), link.read_bytes(), link.is_symlink()) == (b"mine", b"new", False)


def test_damaged_files_are_set_aside_under_free_names(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for content in (b"first", b"second"):
        write_atomic(file, content)
        set_aside(file)
    names = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert names == {"file": b"second", "file.damaged-1": b"first", "file.damaged-2": b"second"}


def test_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    remove(tmp_path / "nothing")
    create_private(tmp_path / "file")
    create_private(tmp_path / "file")
    remove(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_below_a_file_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError) as error:
        ensure_directory(tmp_path / "file" / "below")
    assert error.value.details["errno"] in {"ENOTDIR", "EEXIST"}


def test_a_lock_is_for_one_and_a_shared_lock_for_many(tmp_path: Path) -> None:
    first, second = (FileLock(tmp_path / "lock", 0) for _ in range(2))
    first.acquire(shared=True)
    second.acquire(shared=True)
    with pytest.raises(StoreBusyError, match="another process holds") as error:
        FileLock(tmp_path / "lock", 0.01).acquire()
    assert "try again" in error.value.hint
    first.release()
    second.release()
    with first, pytest.raises(StoreBusyError):
        second.acquire(shared=True)
    second.acquire()
    second.release()


def test_every_error_of_the_system_names_the_path_and_the_error() -> None:
    with pytest.raises(StoreError) as error, os_errors(Path("p"), "read"):
        raise OSError(errno.EIO, "Input/output error")
    assert error.value.message == "cannot read p: Input/output error"
    assert error.value.details == {"path": "p", "errno": "EIO"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("is_linked", [False, True])
def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path, *, is_linked: bool) -> None:
    """`/dev/null` of a user who may do everything would be a file from then on."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with pytest.raises(StoreError, match="not a regular file"):
        write_atomic(link if is_linked else pipe, b"text")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, pipe]


def test_of_two_that_find_a_log_full_one_puts_it_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, acquire = tmp_path / "log", FileLock.acquire
    log.write_bytes(b"a full log\n")

    def after_the_other(lock: FileLock, **more: bool) -> None:
        monkeypatch.undo()
        append_log(log, b"theirs\n", 10)
        acquire(lock, **more)

    monkeypatch.setattr(FileLock, "acquire", after_the_other)
    append_log(log, b"ours\n", 10)
    assert log.read_bytes() == b"theirs\nours\n"
    assert tmp_path.joinpath("log.1").read_bytes() == b"a full log\n"
