"""The script of docs/guides/fleet.md, with real processes and a real Postgres server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ctxgc import Session
from ctxgc.stores import Store, open_store
from tools.requirement_scan import ROOT

SCRIPT = ROOT / "examples" / "fleet" / "fleet.py"
GUIDE = ROOT / "docs" / "guides" / "fleet.md"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store that several processes can share."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/fleet.db"
    address: str = request.getfixturevalue("database")
    return address


def texts(store: Store, name: str) -> list[str]:
    """Return what was said in a session, whatever its view shows of it now."""
    segments = Session(store=store, session_id=name).segments()
    return [s.text for s in segments if s.derived_from is None and s.role in ("user", "assistant")]


def test_two_worker_processes_share_sessions(url: str, tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), url]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = _without_numbers(done.stdout)
    assert [line.partition(":")[0] for line in said.splitlines()] == [
        "hand_over", "side_by_side", "conflict",
    ]  # fmt: skip
    assert said in _without_numbers(GUIDE.read_text(encoding="utf-8"))
    store = open_store(url)
    assert [info.session_id for info in store.sessions()] == ["alpha", "audit", "beta", "shared"]
    for name in ("alpha", "beta"):
        assert texts(store, name)[::2] == [f"{name} {number}" for number in range(10)]
    assert texts(store, "shared") == [
        "from B", "I have read 'from B'.", "from A", "I have read 'from A'.",
    ]  # fmt: skip
    store.close()


def _without_numbers(text: str) -> str:
    """How many commits a job takes is nobody's business here."""
    return re.sub(r"\d+", "N", text)
