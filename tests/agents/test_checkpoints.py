"""A coding agent's transcript is copied when it fills the window, and every half hour."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from ctxgc.agents import checkpoints
from ctxgc.agents.checkpoints import KEPT_DUE, PERCENT, SECONDS, save, save_if_due
from ctxgc.agents.events import HookSettings
from ctxgc.agents.status_line import status_line
from ctxgc.config import DEFAULTS
from tests.requirements import requirement

BEGAN = 1_767_225_600  # 2026-01-01


class Agent:
    """An agent that has worked for some minutes; its clock is the hooks' clock."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings = HookSettings(home=str(home / "ours"))
        self.transcript = home / "transcript.jsonl"
        self.transcript.write_text('{"timestamp": "2026-01-01T00:00:00.123Z"}\n')
        self.minutes = 0.0
        monkeypatch.setattr(time, "time", lambda: BEGAN + self.minutes * 60)
        monkeypatch.setattr(time, "time_ns", lambda: int((BEGAN + self.minutes * 60) * 10**9))

    @property
    def said(self) -> dict[str, object]:
        return {"session_id": "s-1", "transcript_path": str(self.transcript)}

    def work(self, minutes: float, percent: float | None) -> list[str]:
        """Write on for some minutes, and return the triggers of all copies, oldest first."""
        self.minutes += minutes
        with self.transcript.open("a") as file:
            file.write(json.dumps({"at": self.minutes}) + "\n")
        save_if_due(self.settings, self.said, percent)
        return self.copies()

    def copies(self) -> list[str]:
        folder = Path(self.settings.folder) / checkpoints.CHECKPOINTS / "s-1"
        names = sorted(path.name for path in folder.glob("*"))
        return [name.split("-")[2].removesuffix(".jsonl") for name in names]


@pytest.fixture
def agent(home: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    return Agent(home, monkeypatch)


def test_the_marks_are_those_of_the_guard() -> None:
    marks = [DEFAULTS["checkpoint_percent"], DEFAULTS["checkpoint_interval_seconds"]]
    assert marks == [PERCENT, SECONDS]


@requirement("S4.triggers.context-size")
def test_a_full_window_makes_one_copy_until_it_is_compacted(agent: Agent) -> None:
    assert agent.work(1, 80) == []
    assert agent.work(1, 81) == agent.work(1, 90) == ["context_size_threshold"]
    save(agent.settings, agent.said, "auto")
    assert agent.work(1, 10) == ["context_size_threshold", "auto"]
    assert agent.work(1, 85) == ["context_size_threshold", "auto", "context_size_threshold"]


@requirement("S4.triggers.time")
def test_half_an_hour_since_the_beginning_or_the_last_copy_makes_one(agent: Agent) -> None:
    assert agent.work(29, 10) == []
    assert agent.work(2, None) == agent.work(29, 10) == ["time_interval"]
    assert agent.work(2, 10) == ["time_interval", "time_interval"]


def test_copies_by_triggers_do_not_push_out_those_before_compactions(agent: Agent) -> None:
    save(agent.settings, agent.said, "auto")
    for _ in range(KEPT_DUE + 3):
        agent.work(31, 10)
    assert agent.copies() == ["auto", *["time_interval"] * KEPT_DUE]


def test_the_status_line_makes_the_copy(agent: Agent) -> None:
    window = {"context_window_size": 1_000, "current_usage": {"input_tokens": 900}}
    assert "90%" in status_line(agent.settings, {**agent.said, "context_window": window})
    assert agent.copies() == ["context_size_threshold"]


def test_a_status_line_is_shown_although_no_copy_can_be_made(agent: Agent) -> None:
    Path(agent.settings.folder).write_text("in the way")
    window = {"context_window_size": 1_000, "current_usage": {"input_tokens": 900}}
    assert "90%" in status_line(agent.settings, {**agent.said, "context_window": window})
