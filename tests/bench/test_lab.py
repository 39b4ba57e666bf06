"""The benchmark of decisions runs, and judges what it measured."""

from __future__ import annotations

import subprocess
import sys

from bench.lab import targets
from bench.lab_case import Request, chained, share
from ctxgc import repair
from tools.requirement_scan import ROOT


def requests(seconds: float) -> list[Request]:
    fast = [Request(messages=n, whole=0.001, counting=0.0, sparing=0.0005) for n in range(1, 90)]
    slow = [
        Request(messages=n, whole=seconds, counting=0.0, sparing=0.0005) for n in range(90, 101)
    ]
    return [*fast, *slow]


def test_the_quick_benchmark_prints_its_table_and_its_targets() -> None:
    command = [sys.executable, "-m", "bench.lab", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    lines = done.stdout.splitlines()
    assert lines[0].endswith("(p50 / p99):")
    assert sum("p99 of a request" in line or "a collection takes" in line for line in lines) == 2


def test_the_chain_has_the_length_that_was_asked_for_and_breaks_no_promise() -> None:
    chain = chained(3_200)
    assert len(chain) == 3_200
    assert [m["role"] for m in chain].count("system") == 1
    whole = chain[: max(n for n, m in enumerate(chain) if m["role"] == "user")]
    assert repair(whole, "openai").messages == whole


def test_fast_decisions_meet_every_target() -> None:
    assert [met for _, met in targets(requests(0.010), 100_000, 0.2)] == [True, True]


def test_slow_decisions_meet_none() -> None:
    assert [met for _, met in targets(requests(0.016), 100_000, 0.21)] == [False, False]


def test_a_share_of_times_is_the_time_that_it_does_not_exceed() -> None:
    assert share([float(n) for n in range(100)], 0.99) == 99.0
    assert share([3.0, 1.0, 2.0], 0.5) == 2.0
