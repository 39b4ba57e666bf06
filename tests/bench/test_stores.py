"""The store benchmark runs, and judges what it measured."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pytest

from bench.stores import growth, main, target
from bench.stores_case import Result, fill, measure, question, segment
from ctxgc.stores import open_store

SMALL = Result(
    kind="sqlite",
    segments=10_000,
    load=1.0,
    open=1.0,
    put=1.0,
    batch=2.0,
    get=1.0,
    search_all=(0.001, 0.001),
    search_session=(0.001, 0.001),
    delete=1.0,
)


@pytest.mark.parametrize("kind", ["memory", "json", "sqlite"])
def test_every_call_of_a_store_is_timed(kind: str, tmp_path: Path) -> None:
    url = "memory:" if kind == "memory" else f"{kind}:{tmp_path}/stash"
    result = measure(kind, url, 20, 2)
    times = (result.load, result.put, result.batch, result.get, result.delete)
    assert all(time > 0 for time in (*times, *result.search_all, *result.search_session))


def test_a_store_is_filled_with_the_segments_asked_for() -> None:
    store = open_store("memory:")
    fill(store, 1_500)
    assert store.load("s0", "segments") == [(f"k{n}", segment(n)) for n in range(1_500)]


def test_a_question_finds_something() -> None:
    store = open_store("memory:")
    fill(store, 50)
    assert all(store.search(question(Random(n), 50)) for n in range(20))


def test_growth_is_told_per_call() -> None:
    large = msgspec.structs.replace(SMALL, segments=1_000_000, put=1.5, search_all=(0.04, 0.02))
    assert growth(SMALL, large) == (
        "sqlite, 100 times the segments: put x1.5, batch x1.0, get x1.0, search all x40.0, "
        "search session x1.0, delete x1.0"
    )


def test_a_target_is_judged_by_the_clock() -> None:
    assert target("search", (0.05, 0.002), 0.06).startswith("met ")
    assert target("search", (0.07, 0.002), 0.06) == (
        "NOT MET  search: 70.0 ms, 2.0 ms of processor time (at most 60.0 ms)"
    )


def test_one_store_of_one_size_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "200"]) == 0
    header, row = capsys.readouterr().out.split("\n")[:2]
    assert header.split()[:2] == ["store", "segments"]
    assert row.split()[:2] == ["memory", "200"]
