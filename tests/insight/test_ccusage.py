"""The tokens that ccusage prints for the same files, where it can be had."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from ctxgc.insight import CostReport, session_requests, total_cost
from ctxgc.wire.transcripts import Usage, open_transcript
from tests.wire.transcripts import made
from tools.agents_env import NPM
from tools.requirement_scan import ROOT

REAL = ROOT.parent / "shared" / "data" / "claude_code_raw"
INSTALLED = NPM / "node_modules" / ".bin" / "ccusage"
PROGRAM = os.environ.get("CTXGC_CCUSAGE") or shutil.which("ccusage") or str(INSTALLED)

pytestmark = pytest.mark.skipif(
    not Path(PROGRAM).exists() or shutil.which("node") is None,
    reason="ccusage is not installed (next: python -m tools.ccusage)",
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of Claude Code with a made session and, where they are at hand, the recorded ones."""
    folder = tmp_path / "projects" / "-repo"
    folder.mkdir(parents=True)
    lines = made.claude_code(made.conversation(turns=8, lines=60))
    for line in lines:
        if "id" in line.get("message", {}):
            line["requestId"] = (
                f"req_{line['message']['id']}"  # by which ccusage knows an answer again
            )
    made.write_lines(folder / "made.jsonl", lines)
    for packed in sorted(REAL.glob("*.gz")) if REAL.is_dir() else ():
        (folder / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return tmp_path


def test_tokens_are_those_of_ccusage_but_for_the_output_of_streamed_answers(home: Path) -> None:
    files = sorted(home.glob("projects/*/*.jsonl"))
    ours = _ours(files)
    theirs = _theirs(home)
    total = theirs["totals"]
    assert (total["inputTokens"], total["cacheReadTokens"], total["cacheCreationTokens"]) == (
        ours.total.uncached, ours.total.cache_read,
        ours.total.cache_write_5m + ours.total.cache_write_1h,
    )  # fmt: skip
    # ccusage keeps the first record of a streamed answer; the last one has its whole output.
    assert total["outputTokens"] == sum(_first_outputs(files))
    assert ours.total.output >= total["outputTokens"]


def _ours(files: list[Path]) -> CostReport:
    return total_cost(each for file in files for each in session_requests(file, zone=UTC))


def _theirs(home: Path) -> dict[str, dict[str, float]]:
    env = {**os.environ, "CLAUDE_CONFIG_DIR": str(home), "HOME": str(home), "TZ": "UTC"}
    done = subprocess.run(
        [PROGRAM, "daily", "--json", "--offline"], env=env, capture_output=True, check=True,
        timeout=120,
    )  # fmt: skip
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def _first_outputs(files: list[Path]) -> Iterator[int]:
    seen: set[str | None] = set()
    for file in files:
        for item in open_transcript(file).items():
            if isinstance(item, Usage) and item.reply_id not in seen:
                seen.add(item.reply_id)
                yield item.output
