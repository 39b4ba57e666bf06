"""Eight processes share a store, and their history fits one sequence of commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.programs import PLACES, run_program


@pytest.mark.parametrize("place", PLACES)
def test_eight_processes_never_lose_each_others_writes(place: str, tmp_path: Path) -> None:
    counts = run_program("many", place.format(tmp_path), 8, 2, 1, tmp_path)
    assert min(counts["put"], counts["read"], counts["refused"]) > 0


def test_eight_processes_share_a_postgres_server(database: str, tmp_path: Path) -> None:
    counts = run_program("many", database, 8, 2, 1, tmp_path)
    assert min(counts["put"], counts["read"], counts["refused"]) > 0


@pytest.mark.deep
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", range(20))
def test_eight_processes_for_ten_seconds(place: str, seed: int, tmp_path: Path) -> None:
    assert run_program("many", place.format(tmp_path), 8, 10, seed, tmp_path)["put"] > 100


@pytest.mark.deep
def test_eight_processes_on_postgres_for_ten_seconds(database: str, tmp_path: Path) -> None:
    assert run_program("many", database, 8, 10, 1, tmp_path)["put"] > 100
