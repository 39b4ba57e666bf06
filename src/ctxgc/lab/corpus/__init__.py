"""The lab's own corpus: runs of a scripted agent on generated projects, the same at every making.

They are synthetic and say so in their `source`. They let everybody try the lab; what a policy is worth
shows only on recorded runs of real agents. `python -m ctxgc.lab.corpus` makes the file again.
"""

from __future__ import annotations

from pathlib import Path

from ctxgc.lab.runs import Run, read_runs

FILE = Path(__file__).parent / "runs.jsonl.gz"


def demo_runs(least_tokens: int = 0) -> list[Run]:
    """Return the runs of at least so many tokens that ship with ctxgc."""
    return list(read_runs(FILE, least_tokens))
