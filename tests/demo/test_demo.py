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
from ctxgc.demo.run import PRICE_WINDOW, ROOM_WINDOW, FirstCollection, Play, play

TITLES = [
    "A session, twice",
    "64,000 tokens: the window before each request",
    "Request N, the soft limit is reached: one collection, asked for by hand",
    "What left, and the evidence that decided",
    "What stayed, and by which root",
    "Then by itself: what left for the price, and for room",
    "In 200,000 tokens: what left for the price",
    "Back again, by the handle in its tombstone",
    "The bill, in tokens, against what would really have been sent",
    "The ledger of 64,000 tokens",
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
def room() -> Play:
    return play(ROOM_WINDOW)


@pytest.fixture(scope="module")
def price() -> Play:
    return play(PRICE_WINDOW)


@pytest.fixture(scope="module")
def first(room: Play) -> FirstCollection:
    assert room.first is not None
    return room.first


def _titles(text: str) -> list[str]:
    found = re.findall(r"^── (.*?) ─+$", text, re.MULTILINE)
    return [re.sub(r"^Request \d+", "Request N", title) for title in found]


def _row(text: str, name: str, nth: int = 0) -> tuple[int, ...]:
    """Return the numbers of the nth table row that starts with a name."""
    rows = re.findall(rf"^ *{name} +([\d,]+) +([\d,]+)$", text, re.MULTILINE)
    return tuple(int(number.replace(",", "")) for number in rows[nth])


def test_the_story_has_all_its_sections_in_order(text: str) -> None:
    assert _titles(text) == TITLES


def test_the_story_fits_a_hundred_columns_and_has_no_colours(text: str) -> None:
    assert [line for line in text.splitlines() if len(line) > 100] == []
    assert "\x1b" not in text


def test_the_ledger_adds_up(text: str, room: Play) -> None:
    ingested, working, stashed, deleted = (
        _row(text, name) for name in ("ingested", "working", "stashed", "deleted")
    )
    assert ingested == tuple(map(sum, zip(working, stashed, deleted, strict=True)))
    assert ingested == (room.ledger.ingested.segments, room.ledger.ingested.tokens)
    assert "nothing was lost" in text


def test_only_texts_of_the_collector_are_deleted(room: Play, price: Play) -> None:
    assert (room.deleted_of_session, price.deleted_of_session) == (0, 0)


def test_the_plan_is_what_the_collection_did(first: FirstCollection) -> None:
    assert first.plan.total_tokens_freed == first.result.tokens_freed
    assert first.plan.shortfall == 0
    assert first.result.tokens_after <= first.target
    assert [entry.segment.segment_id for entry in first.entries] == [
        candidate.segment_id for candidate in first.plan.candidates
    ]


def test_the_first_collection_says_why_each_left_and_leaves_a_valid_history(
    first: FirstCollection,
) -> None:
    assert {entry.evidence.kind for entry in first.entries} == {"copy", "least_worth"}
    assert all("[ctxgc" in entry.stub for entry in first.entries if entry.stub)
    assert any(entry.stub for entry in first.entries)
    assert (first.violations, first.lost) == (0, 0)


def test_every_departure_has_its_evidence(text: str, room: Play, price: Play) -> None:
    assert {evidence.kind for evidence, _ in room.departures()} >= {
        "superseded",
        "least_worth",
    }
    assert {evidence.kind for evidence, _ in price.departures()} == {"superseded", "copy", "idle"}
    for played in (room, price):
        left = [tokens for evidence, tokens in played.departures() if evidence.kind == "superseded"]
        assert (len(left), sum(left)) in (
            _row(text, "superseded"), _row(text, "superseded", 1),
        )  # fmt: skip


def test_the_window_is_never_full(room: Play, price: Play) -> None:
    assert max(room.fills) < 100
    assert max(price.fills) < 50


def test_a_handle_brings_the_same_bytes_back(room: Play, price: Play) -> None:
    assert room.recalled is not None
    assert price.recalled is not None
    assert (room.recalled.is_same, price.recalled.is_same) == (True, True)


def test_the_bill_is_below_that_of_sending_everything(room: Play, price: Play) -> None:
    assert room.savings.bill < room.savings.counterfactual_bill
    assert price.savings.bill < 0.6 * price.savings.counterfactual_bill


def test_another_process_with_another_hash_seed_tells_the_same_story(text: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "ctxgc.demo"]
    done = subprocess.run(
        command, capture_output=True, env=environment, encoding="utf-8", check=True
    )
    assert done.stdout == text
    assert done.stderr == ""


def test_a_short_session_needs_no_room() -> None:
    stream = io.StringIO()
    main(["--segments", "30", "--seed", "1"], stream)
    assert _titles(stream.getvalue()) == [*TITLES[:2], *TITLES[-5:]]


def test_a_terminal_gets_colours_and_the_same_words(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
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
