"""Every code block of the seeds is a file in `examples/seeds/`, and every such file runs.

The first line of a file says which block of which seed it is, counted from 1 through the whole seed:

    \"\"\"S1 "Segment Scoring", block 1: the score of a segment.\"\"\"

A file may hold several blocks ("blocks 2 and 3"), or none: what a seed asks for in words.
Where a block cannot run as written, a line of the docstring begins with "Fault of the seed:" and says why.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from difflib import get_close_matches
from pathlib import Path

import pytest

from tests.markdown import Block, read
from tools.requirement_scan import ROOT

FILES = sorted((ROOT / "examples" / "seeds").glob("*.py"))
SEEDS = ROOT.parent / "shared" / "seeds"  # the seeds themselves are not part of the repository

_CLAIM = re.compile(
    r'"""(?P<seed>S\d) (?:[^:]*\bblocks? (?P<blocks>\d+(?:(?:, | and )\d+)*)|[^:]+): \S'
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_block_of_a_seed_runs_with_our_names(file: Path, tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    kept = {name: value for name, value in os.environ.items() if not _is_a_setting(name)}
    done = subprocess.run(
        [sys.executable, str(file)],
        cwd=here,
        env={**kept, "HOME": str(home), "USERPROFILE": str(home), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _is_a_setting(name: str) -> bool:
    return name.startswith(("CTXGC_", "JAATO_", "XDG_"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_of_a_seed_imports_from_faces(file: Path) -> None:
    code = file.read_text(encoding="utf-8")
    assert re.findall(r"^\s*from (ctxgc\.\w+\.[\w.]+) import", code, re.MULTILINE) == []


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the seeds are not at hand")
@pytest.mark.parametrize("number", range(5))
def test_every_block_of_a_seed_is_exactly_one_file(number: int) -> None:
    claims = sorted(block for file in FILES for block in _claimed(file, f"S{number}"))
    blocks = [place for place, _ in enumerate(_blocks(number), start=1)]
    assert claims == blocks


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the seeds are not at hand")
@pytest.mark.parametrize("number", range(5))
def test_a_file_holds_the_blocks_that_it_names_line_for_line(number: int) -> None:
    """With other names in it a line still looks like itself; a few lines may have to change."""
    blocks = _blocks(number)
    for file in FILES:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
        for place in _claimed(file, f"S{number}"):
            written = [line.strip() for line in blocks[place - 1].text.splitlines() if line.strip()]
            kept = [line for line in written if get_close_matches(line, lines, n=1)]
            assert len(kept) >= 0.6 * len(written), f"{file.name} has little of block {place}"


def _blocks(number: int) -> tuple[Block, ...]:
    (path,) = SEEDS.glob(f"{number:03}_*.txt")
    return read(path).blocks


def _claimed(file: Path, seed: str) -> list[int]:
    claim = _CLAIM.match(file.read_text(encoding="utf-8"))
    assert claim, f"the first line of {file.name} does not say which block of which seed it is"
    numbers = [int(number) for number in re.findall(r"\d+", claim["blocks"] or "")]
    return numbers if claim["seed"] == seed else []
