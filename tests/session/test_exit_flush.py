"""A program that ends without closing its sessions loses nothing that came in."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from ctxgc import Session

BEGIN = """
import os, sys
from ctxgc import Session
session = Session(8_000, store=sys.argv[1], session_id="a")
session.append({"role": "user", "content": "q"})
session.messages()
session.append({"role": "assistant", "content": "a"})
"""
PLACES = pytest.mark.parametrize("place", ["json:{}/s.json", "sqlite:{}/s.db"])


def _ended(program: str, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BEGIN + program, url], capture_output=True, text=True, check=False
    )


def _said(url: str) -> list[str]:
    with Session(store=url, session_id="a") as session:
        return [str(message["content"]) for message in session.view()]


@PLACES
@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError", "del session"])
def test_what_came_in_last_is_stored_at_the_end_of_a_program(
    place: str, end: str, tmp_path: Path
) -> None:
    url = place.format(tmp_path)
    _ended(end, url)
    assert _said(url) == (["q"] if end == "del session" else ["q", "a"])


@PLACES
def test_a_child_leaves_the_session_of_its_parent_alone(place: str, tmp_path: Path) -> None:
    url = place.format(tmp_path)
    program = """
if os.fork() == 0:
    sys.exit(0)
os.wait()
session.append({"role": "user", "content": "more"})
session.messages()
"""
    done = _ended(program, url)
    assert (done.returncode, done.stderr) == (0, "")
    assert _said(url) == ["q", "a", "more"]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not show files")
def test_a_session_that_is_dropped_leaves_no_file_open(tmp_path: Path) -> None:
    def opened() -> int:
        gc.collect()
        links = (each for each in Path("/proc/self/fd").iterdir() if each.is_symlink())
        return sum(str(link.readlink()).startswith(str(tmp_path)) for link in links)

    Session(8_000, store=f"sqlite:{tmp_path}/s.db")
    before = opened()
    for _ in range(5):
        Session(8_000, store=f"sqlite:{tmp_path}/s.db").append({"role": "user", "content": "q"})
    assert opened() == before
