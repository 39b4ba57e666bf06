"""Where ctxgc keeps what belongs to a user."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ctxgc.places import agents_folder, state_folder, user_store


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path


def test_the_state_folder_is_the_one_of_the_system(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert state_folder() == f"{home}/.local/state/ctxgc"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert state_folder() == f"{home}/Library/Application Support/ctxgc"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", f"{home}/local")
    assert state_folder() == f"{home}/local/ctxgc"


def test_what_earlier_versions_made_on_other_systems_stays_in_use(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    (home / ".local/state/ctxgc").mkdir(parents=True)
    assert state_folder() == f"{home}/.local/state/ctxgc"


def test_two_variables_move_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/srv/state")
    assert state_folder() == "/srv/state/ctxgc"
    monkeypatch.setenv("CTXGC_STATE_HOME", "~/mine")
    assert state_folder() == f"{home}/mine"
    assert agents_folder() == f"{home}/mine/agents"
    assert user_store() == f"sqlite:{home}/mine/agents/stash.sqlite"
