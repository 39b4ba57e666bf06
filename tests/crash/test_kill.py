"""Writers are killed: at random moments, at chosen system calls, with disks that fail."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.crash.programs import PLACES, run_program

needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed (Debian: apt install strace)"
)


@pytest.mark.parametrize("place", PLACES)
def test_a_kill_at_any_moment_loses_nothing(place: str, tmp_path: Path) -> None:
    counts = run_program("rounds", "at_random_moments", place.format(tmp_path), 25, 1)
    assert counts["kills"] == 25
    assert counts["acknowledged"] >= 12


@needs_strace
@pytest.mark.parametrize("place", PLACES)
def test_a_kill_at_a_system_call_loses_nothing(place: str, tmp_path: Path) -> None:
    counts = run_program("rounds", "at_system_calls", place.format(tmp_path), 20, 2)
    assert counts["kills"] >= 15


@needs_strace
@pytest.mark.parametrize("place", PLACES)
def test_a_disk_that_fails_once_is_a_typed_error_and_no_harm(place: str, tmp_path: Path) -> None:
    counts = run_program("rounds", "with_errors", place.format(tmp_path), 15, 3)
    assert counts["errors"] > 5


@pytest.mark.deep
@pytest.mark.parametrize("place", PLACES)
def test_a_thousand_kills_lose_nothing(place: str, tmp_path: Path) -> None:
    assert run_program("rounds", "at_random_moments", place.format(tmp_path), 1_000, 4)["kills"]


@needs_strace
@pytest.mark.deep
@pytest.mark.parametrize("place", PLACES)
def test_a_kill_at_every_system_call_loses_nothing(place: str, tmp_path: Path) -> None:
    assert run_program("rounds", "at_system_calls", place.format(tmp_path), 0, 5)["kills"] > 30


@needs_strace
@pytest.mark.deep
@pytest.mark.parametrize("place", PLACES)
def test_a_disk_that_fails_often_is_no_harm(place: str, tmp_path: Path) -> None:
    assert run_program("rounds", "with_errors", place.format(tmp_path), 600, 6)["errors"] > 200
