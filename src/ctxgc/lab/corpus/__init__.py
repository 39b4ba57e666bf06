"""The lab's own corpus: reproducible runs of the scripted agent on generated projects.

They are synthetic, and their `source` says so. With them you can try the lab; what a policy is worth
shows only on recorded runs of real agents. `python -m ctxgc.lab.corpus` makes the file again.
"""

from __future__ import annotations

from pathlib import Path

from ctxgc.lab.runs import Run, read_runs

FILE = Path(__file__).parent / "runs.jsonl.gz"


def demo_runs(least_tokens: int = 0) -> list[Run]:
    """Return the runs that ship with ctxgc and have at least `least_tokens` tokens."""
    return list(read_runs(FILE, least_tokens))
