"""The programs of this folder that tests start, and the stores that they write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("json:{}/stash.json", "sqlite:{}/stash.db")


def run_program(name: str, *arguments: object) -> dict[str, int]:
    """Run one of the programs of this folder, and return what it counted."""
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
