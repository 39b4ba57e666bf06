"""Whether anybody is writing a file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxgc.agents import check_still
from ctxgc.agents.backups import check_unchanged, file_state, writers
from ctxgc.errors import TranscriptBusyError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"{}\n")
    past = time.time() - 60
    os.utime(path, (past, past))
    return path


def test_a_quiet_file_is_still(file: Path) -> None:
    assert check_still(file) == file_state(file)


def test_a_file_that_was_written_a_moment_ago_is_busy(file: Path) -> None:
    os.utime(file)
    with pytest.raises(
        TranscriptBusyError, match=r"session\.jsonl is being written: it was written \d s ago"
    ):
        check_still(file)
    assert check_still(file, quiet_seconds=0.0) == file_state(file)


def test_a_file_that_somebody_has_open_to_write_is_busy(file: Path) -> None:
    with file.open("rb"):
        assert list(writers(file)) == []
    with file.open("ab"):
        assert list(writers(file)) == [os.getpid()]
        with pytest.raises(TranscriptBusyError, match=f"process {os.getpid()} has it open"):
            check_still(file)


def test_a_process_that_ends_during_the_look_is_passed_over(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = f"/proc/{os.getppid()}/fd"

    def without(real: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def listing(path: Any) -> Any:
            if os.fspath(path) == gone:
                raise FileNotFoundError(gone)
            return real(path)

        return listing

    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, without(getattr(os, name)))
    with file.open("ab"):
        assert list(writers(file)) == [os.getpid()]


def test_a_file_that_changes_between_two_looks_is_busy(file: Path) -> None:
    seen = file_state(file)
    check_unchanged(file, seen)
    file.write_bytes(b"{}\n{}\n")
    with pytest.raises(TranscriptBusyError, match="it is changing now"):
        check_unchanged(file, seen)
