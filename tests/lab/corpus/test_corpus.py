"""The corpus that ships: reproducible, valid, marked as synthetic, and useful."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from ctxgc import validate
from ctxgc.lab import Run, demo_runs
from ctxgc.lab.corpus import FILE
from ctxgc.lab.corpus.plans import PLANS, corpus_text, packed
from ctxgc.lab.facts import total_weight
from ctxgc.lab.needs import Needs

MOST_BYTES = 1_500_000


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return demo_runs()


def test_the_generator_makes_the_corpus_that_ships() -> None:
    text = corpus_text()
    assert gzip.decompress(FILE.read_bytes()) == text
    assert packed(text) == packed(text)
    assert FILE.stat().st_size <= MOST_BYTES


def test_the_runs_are_many_sizes_and_projects(runs: list[Run]) -> None:
    sizes = [total_weight(run.messages) for run in runs]
    assert len(runs) == len(PLANS)
    assert 12 <= len(runs) <= 20
    assert 9_000 <= min(sizes) <= 12_000
    assert 100_000 <= max(sizes) <= 120_000
    assert len({run.group for run in runs}) == 12


def test_every_run_says_that_it_is_synthetic(runs: list[Run]) -> None:
    assert {"synthetic" in run.source for run in runs} == {True}


def test_every_history_is_valid_and_has_rising_times(runs: list[Run]) -> None:
    for run in runs:
        assert validate(run.messages, "openai") == []
        assert run.times == sorted(run.times or [])
        assert len(run.times or []) == len(run.messages)


def test_some_pauses_are_longer_than_a_cache_lives(runs: list[Run]) -> None:
    gaps = [
        b - a for run in runs for a, b in zip(run.times or [], (run.times or [])[1:], strict=False)
    ]
    assert 10 < sum(gap > 300 for gap in gaps) < 200


def test_an_edit_quotes_text_that_was_read_before(runs: list[Run]) -> None:
    """An agent can only quote what was somewhere in its conversation."""
    for run in runs:
        seen = ""
        for message in run.messages:
            for arguments in _edits(message):
                first = arguments["old_string"].splitlines()[0]
                assert first in seen, first
            seen += _text(message)


def test_what_the_agent_uses_again_is_often_far_back(runs: list[Run]) -> None:
    needs = [Needs(run) for run in runs]
    steps = [step for each in needs for step in each.steps]
    assert sum(bool(step.needs) for step in steps) / len(steps) > 0.4
    assert sum(len(step.lines) for step in steps) > 1_000
    assert sum(len(step.words) for step in steps) > 300


def test_the_corpus_ships_in_the_wheel() -> None:
    """Hatch takes every file of the package that git does not ignore."""
    root = Path(__file__).parents[3]
    ignored = (root / ".gitignore").read_text(encoding="utf-8").split()
    assert not {"*.gz", "*.jsonl.gz"} & set(ignored)
    assert FILE.is_relative_to(root / "src" / "ctxgc")


def _edits(message: dict[str, Any]) -> list[dict[str, Any]]:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return [json.loads(call["arguments"]) for call in calls if call["name"] == "Edit"]


def _text(message: dict[str, Any]) -> str:
    called = "".join(
        "\n".join(str(value) for value in json.loads(call["function"]["arguments"]).values())
        for call in message.get("tool_calls", ())
    )
    return re.sub(r"^ *\d+→", "", message.get("content") or "", flags=re.MULTILINE) + called
