"""A home of the test's own for every test of this room."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    project = folder / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder, and every directory with nothing as its content."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b"/"
        for path in sorted(folder.rglob("*"))
    }
