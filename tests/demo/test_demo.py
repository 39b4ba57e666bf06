"""The demo shows a whole session, and its numbers add up."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from ctxgc.cli import main as cli
from ctxgc.demo.__main__ import main
from ctxgc.demo.run import DemoRun, run

TITLES = [
    "A session",
    "The window over time",
    "The full collection",
    "What left in the full collection, and why",
    "Then a small step after each message",
    "What left step by step, and why",
    "Why these stayed: from a root, link by link",
    "The ledger",
]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def text() -> str:
    stream = io.StringIO()
    assert main([], stream) == 0
    return stream.getvalue()


@pytest.fixture(scope="module")
def played() -> DemoRun:
    return run()


def _titles(text: str) -> list[str]:
    return re.findall(r"^── (.*?) ─+$", text, re.MULTILINE)


def _row(text: str, name: str, nth: int = 0) -> tuple[int, ...]:
    """Return the numbers of the nth table row that starts with a name."""
    rows = re.findall(rf"^ *{name} +([\d,]+) +([\d,]+)$", text, re.MULTILINE)
    return tuple(int(number.replace(",", "")) for number in rows[nth])


def test_the_story_has_all_its_sections_in_order(text: str) -> None:
    assert _titles(text) == TITLES


def test_the_story_fits_a_hundred_columns_and_has_no_colours(text: str) -> None:
    assert [line for line in text.splitlines() if len(line) > 100] == []
    assert "\x1b" not in text


def test_the_ledger_adds_up(text: str, played: DemoRun) -> None:
    ingested, working, stashed, deleted = (
        _row(text, name) for name in ("ingested", "working", "stashed", "deleted")
    )
    assert ingested == tuple(map(sum, zip(working, stashed, deleted, strict=True)))
    assert ingested == (played.ledger.ingested.segments, played.ledger.ingested.tokens)
    assert 1_000 <= ingested[0] <= 1_050
    assert "nothing was lost" in text


def test_the_reasons_account_for_all_that_left(text: str, played: DemoRun) -> None:
    assert played.full is not None
    assert _row(text, "all") == (len(played.full.plan), played.full.tokens_freed)
    assert _row(text, "all", 1) == (
        sum(len(step.plan) for step in played.steps),
        sum(step.tokens_freed for step in played.steps),
    )
    left = _row(text, "all")[0] + _row(text, "all", 1)[0]
    assert left == played.ledger.stashed.segments + played.ledger.deleted.segments


def test_the_full_collection_goes_from_the_hard_limit_to_the_target(played: DemoRun) -> None:
    assert played.full is not None
    assert played.full.tokens_before >= played.window * 0.9
    assert played.full.tokens_after <= played.window * 0.6
    assert played.full.plan.shortfall == 0


def test_every_departure_says_why(played: DemoRun) -> None:
    assert all(departure.reason and departure.because for departure in played.departures)
    assert len({departure.because for departure in played.departures}) >= 5


def test_the_chains_lead_from_a_root_to_a_segment_that_stayed(played: DemoRun) -> None:
    assert len(played.kept) == 3
    for kept in played.kept:
        assert len(kept.chain) >= 2
        assert kept.chain[0].via
        assert kept.chain[-1].segment_id == kept.segment.segment_id


def test_another_process_with_another_hash_seed_tells_the_same_story(text: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "ctxgc.demo"]
    done = subprocess.run(
        command, capture_output=True, env=environment, encoding="utf-8", check=True
    )
    assert done.stdout == text
    assert done.stderr == ""


def test_a_short_session_needs_no_collection() -> None:
    stream = io.StringIO()
    main(["--segments", "30", "--seed", "1"], stream)
    assert _titles(stream.getvalue()) == ["A session", "The window over time", "The ledger"]


def test_a_terminal_gets_colours_and_the_same_words(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    terminal = _Terminal()
    main([], terminal)
    shown = terminal.getvalue()
    assert "\x1b[32m" in shown
    lines = [line.rstrip() for line in ESCAPE.sub("", shown).splitlines()]
    assert [line for line in text.splitlines() if line not in lines] == []


def test_a_terminal_without_rich_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    terminal = _Terminal()
    main(["--segments", "30"], terminal)
    assert "\x1b" not in terminal.getvalue()


def test_the_command_line_tells_the_same_story(text: str) -> None:
    done = CliRunner().invoke(cli, ["demo"])
    assert (done.exit_code, done.output) == (0, text)
