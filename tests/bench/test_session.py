"""The session benchmark runs, and judges what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import peers
from bench.session import targets
from bench.session_case import Requests, history, measure_collection, measure_requests
from tools.requirement_scan import ROOT


def requests(messages: int, view: float) -> Requests:
    return Requests(messages=messages, append=0.0005, view=view, due=view, counting=0.0001)


@pytest.mark.large
def test_the_quick_benchmark_prints_every_table() -> None:
    command = [sys.executable, "-m", "bench.session", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    titles = [line for line in done.stdout.splitlines() if line.endswith(":")]
    assert len(titles) == 3
    assert done.stdout.count("collects in") == 3


def test_requests_are_measured_without_the_time_of_counting() -> None:
    found = measure_requests(40, runs=2)
    assert found.messages == 40
    assert min(found.append, found.view, found.counting) > 0
    assert found.beyond_counting == found.append - found.counting + found.view


def test_a_collection_that_was_measured_met_its_target() -> None:
    assert measure_collection(400, "gc_truncate", runs=1) > 0


def test_a_fast_session_meets_every_target() -> None:
    found = targets([requests(250, 0.9), requests(2_000, 0.001)], 10_000, {"gc_mark_sweep": 0.4})
    assert [met for _, met in found] == [True, True]


def test_a_slow_session_meets_none() -> None:
    found = targets([requests(2_000, 0.002)], 10_000, {"gc_mark_sweep": 0.5})
    assert [met for _, met in found] == [False, False]


def test_the_history_is_the_same_each_time() -> None:
    assert json.dumps(history(50)) == json.dumps(history(50))


@pytest.mark.large
def test_peers_that_cannot_be_installed_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "HOME", tmp_path / "peers")
    monkeypatch.setattr(peers, "PACKAGES", ("no such package!",))
    with pytest.raises(peers.PeersMissingError, match="pip"):
        peers.measure_peers([history(10)], runs=1)
