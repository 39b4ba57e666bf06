"""Running commands in an empty project."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ctxgc.cli import main

Run = Callable[..., Result]


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """An empty project that the commands run in, of a user who has no store yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    return tmp_path


@pytest.fixture
def run(project: Path) -> Run:
    """Run a command in the project; an exception that is not handled fails the test."""
    assert project.is_dir()

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(main, arguments, catch_exceptions=False)

    return call


@pytest.fixture
def write(project: Path) -> Callable[[str, Any], Path]:
    """Write a text, or a value as JSON, to a file of the project."""

    def put(name: str, value: Any) -> Path:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return path

    return put


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal so wide that nothing must be cut."""
    monkeypatch.setenv("COLUMNS", "160")
