"""The engine benchmark runs, and judges what it measured."""

from __future__ import annotations

import msgspec

from bench.engine import LARGEST, SMALL, WIDE, Case, Result, in_own_process, targets
from bench.workload import segments


def _result(case: Case, total: float, peak_bytes: int = 10**9) -> Result:
    return Result(
        case=case,
        tokens=case.segments * case.tokens_each,
        ingest=1.0,
        roots=0.0,
        mark=0.0,
        score=0.0,
        plan=total,
        total=total,
        all_runs=total * case.runs,
        reached=1,
        leaving=1,
        heap_bytes=1,
        peak_bytes=peak_bytes,
    )


def test_a_case_is_measured_in_a_process_of_its_own() -> None:
    case = Case(400, 32, 2)
    result = in_own_process(case)
    assert (result.case, result.tokens) == (case, 400 * 32)
    assert 0 < result.reached < 400
    assert 0 < result.leaving < 400
    assert min(result.ingest, result.total, result.peak_bytes) > 0
    assert result.total <= result.all_runs


def test_a_fast_engine_meets_every_target() -> None:
    results = [_result(SMALL, 0.01), _result(LARGEST, 0.13), _result(WIDE, 0.1)]
    assert [met for _, met in targets(results)] == [True] * 5


def test_a_slow_engine_meets_none() -> None:
    results = [_result(SMALL, 0.03), _result(LARGEST, 5.1, 2 * 10**9), _result(WIDE, 0.2)]
    assert [met for _, met in targets(results)] == [False] * 5


def test_a_workload_is_the_same_each_time_and_as_long_as_asked() -> None:
    first, second = list(segments(150, 20)), list(segments(150, 20))
    assert len(first) == 150
    assert msgspec.json.encode(first) == msgspec.json.encode(second)
    assert {len(segment.text) for segment in first} == {80}
    assert list(segments(100, 20)) == first[:100]
