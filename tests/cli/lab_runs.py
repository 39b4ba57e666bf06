"""A small file of runs for the commands of the lab."""

from __future__ import annotations

import json
from pathlib import Path

from ctxgc.testing import make_session


def write_runs(folder: Path, *, count: int, messages: int) -> Path:
    """Write so many made runs of so many messages, and return the file."""
    file = folder / "made.jsonl"
    runs = [
        {"id": f"r{seed}", "messages": make_session(seed=seed, messages=messages).messages}
        for seed in range(count)
    ]
    file.write_text("\n".join(map(json.dumps, runs)), "utf-8")
    return file
