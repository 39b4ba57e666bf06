"""The status line tells zone, tokens and share of the window."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxgc.agents.events import HookSettings
from ctxgc.agents.status_line import ZONES, status_line
from ctxgc.config import GCConfig
from ctxgc.guard import zone_of


def line(**said: Any) -> str:
    return status_line(HookSettings(), said)


def window(used: int, size: int = 200_000) -> dict[str, Any]:
    return {"context_window_size": size, "current_usage": {"input_tokens": used}}


@pytest.mark.parametrize("percent", [0, 69.9, 70, 84.9, 85, 94.9, 95, 120])
def test_the_zones_are_those_of_the_guard(percent: float) -> None:
    shown = next(name for start, name, _ in ZONES if percent >= start)
    assert shown == zone_of(percent, GCConfig()).value
    assert f" {shown}\x1b" in line(context_window=window(int(percent * 10), 1_000))


def test_what_the_agent_says_is_shown() -> None:
    assert (
        line(context_window=window(50_000)) == "ctxgc \x1b[32m██░░░░░░░░ safe\x1b[0m 50k/200k 25%"
    )


def test_an_older_agent_is_read_from_its_transcript(home: Path) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 180_000, "output_tokens": "x"}
    message = {"id": "m", "role": "assistant", "content": "Done.", "usage": usage}
    entry = {"type": "assistant", "uuid": "u", "sessionId": "s", "message": message}
    path = home / "t.jsonl"
    path.write_text(f"{json.dumps(entry)}\n{{half", encoding="utf-8")
    assert "danger" in line(transcript_path=str(path))


@pytest.mark.parametrize("said", [{}, {"context_window": None}, {"context_window": {"x": 1}}])
def test_before_the_first_answer_only_the_name_is_shown(said: dict[str, Any]) -> None:
    assert line(**said) == "ctxgc"
