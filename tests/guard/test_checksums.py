"""File checksums: what changed since a checkpoint is reported, file by file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ctxgc.guard import Checkpoint, FileDifference, checksum_files, compare_files
from tests.requirements import requirement


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@requirement("S4.checkpoint.file-checksums")
def test_every_way_a_file_can_differ_is_reported(tmp_path: Path) -> None:
    for name in ("same", "changed", "missing", "unreadable"):
        (tmp_path / name).write_text(name)
    names = ["same", "changed", "missing", "unreadable", "added", "never"]
    made = Checkpoint(context_snapshot={}, file_checksums=checksum_files(names, tmp_path))
    (tmp_path / "changed").write_text("other")
    (tmp_path / "missing").unlink()
    (tmp_path / "unreadable").unlink()
    (tmp_path / "unreadable").mkdir()
    (tmp_path / "added").write_text("new")
    assert compare_files(made, tmp_path) == [
        FileDifference(path="changed", kind="changed", expected=sha("changed"), found=sha("other")),
        FileDifference(path="missing", kind="missing", expected=sha("missing"), found=""),
        FileDifference(path="unreadable", kind="unreadable", expected=sha("unreadable"), found=""),
        FileDifference(path="added", kind="added", expected="", found=sha("new")),
    ]


def test_nothing_is_reported_while_nothing_changed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    sums = checksum_files([tmp_path / "a", "absent", "im\0possible"], tmp_path)
    assert sums == {str(tmp_path / "a"): sha("a"), "absent": "", "im\0possible": ""}
    assert compare_files(Checkpoint(context_snapshot={}, file_checksums=sums), tmp_path) == []
