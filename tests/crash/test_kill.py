"""Writers are killed: at random moments, at chosen system calls, with disks that fail."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("json:{}/stash.json", "sqlite:{}/stash.db")

needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed (Debian: apt install strace)"
)


def run_program(name: str, *arguments: object) -> dict[str, int]:
    """Run one of the programs beside this file, and return what it counted."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.crash.{name}", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    if "strace cannot attach" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    print(name, *arguments, counts)
    return counts


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
