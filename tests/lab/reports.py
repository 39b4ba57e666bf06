"""Reports made by hand, for tests of what shows them."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxgc.economics import price_sheet
from ctxgc.lab import Player, PolicyTask, Report, RunResult
from ctxgc.lab.policies import Kind
from ctxgc.lab.summary import report

ROWS: tuple[tuple[str, Kind, float, int], ...] = (
    ("never", "base", 1.0, 20),
    ("ctxgc", "ours", 0.66, 19),
    ("somebody", "peer", 0.97, 18),
    ("mask-keep-10", "restated", 1.62, 17),
    ("oracle-line", "oracle", 0.44, 20),
)


class NamedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy by name alone."""

    name: str
    kind: Kind
    version: str = "1.2.3"
    settings: dict[str, Any] = {}

    def open(self, task: PolicyTask) -> Player:
        """Fail: nothing is played here."""
        raise AssertionError(f"{task.run.id} must not be played")


def result(policy: str, number: int, share: float, clean: int, **more: Any) -> RunResult:
    """Return the result of one of the runs."""
    known = {
        "run": f"run-{number}", "group": f"group-{number % 3}", "source": "made", "policy": policy,
        "limit": 200_000, "tokens": 9_000 + 1_000 * number, "messages": 60, "requests": 30,
        "unpruned": 1_000.0, "bill": 1_000.0 * share + 10 * number, "steps": 20, "strict": clean,
        "clean": clean, "needs": 100, "resident": 5 * clean, "wide": 5 * clean, "lost": 100 - 5 * clean,
        "line_steps": 10, "line_steps_kept": clean // 2, "words": 9, "words_kept": 8, "newest": 5,
        "newest_shown": 5, "prefix": 1_000.0, "bits_steps": 30, "bits": 1_200 - 10 * clean,
        "bits_whole": 1_000, "bits_bare": 1_500, "breaks": 2, "counts": {"collections": 2.0},
    }  # fmt: skip
    return RunResult(**{**known, **more})


def made_report(*, prefix: str = "", timing: bool = False, **more: Any) -> Report:
    """Return a report on five policies and six runs; `prefix` goes before every name."""
    policies = [
        NamedPolicy(name=prefix + name, kind=kind, settings={"note": prefix})
        for name, kind, _, _ in ROWS
    ]
    seconds = ((100, 0.001), (600, 0.002), (5_000, 0.004)) if timing else ()
    results = [
        result(prefix + name, number, share, clean, seconds=seconds, **more)
        for name, _, share, clean in ROWS
        for number in range(6)
    ]
    return report(
        policies, results, version="9.9", source=f"{prefix}made by hand", regime="cost",
        sheet=price_sheet("anthropic-5m"), least_tokens=8_000,
    )  # fmt: skip
