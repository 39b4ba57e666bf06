"""In the danger zone S4's priorities rank what a session lets go, by the configured matrix."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc import GCConfig, Session
from tests.requirements import requirement

NUMBERS = range(8)


def talk(limit: int, priorities: dict[str, Any]) -> Session:
    """Return a session with a talk, two answers of which are for debugging only."""
    config = GCConfig(
        priorities=priorities, threshold_percent=90, recent_messages=2, recent_user_messages=1,
        preserve_recent_turns=0,
    )  # fmt: skip
    session = Session(limit, config=config, store="memory:")
    for number in NUMBERS:
        session.append({"role": "user", "content": f"question {number}"})
        answer = {"role": "assistant", "content": f"answer {number}: " + f"word{number} " * 90}
        session.append(answer, tags=["debug"] if number in (3, 4) else [])
    return session


def collected(percent: float, priorities: dict[str, Any]) -> set[int]:
    """Return the numbers of the answers that are left of a talk that filled so much of the window."""
    used = talk(100_000, priorities).usage().total_tokens
    session = talk(int(used * 100 / percent), priorities)
    session.collect(used * 2 // 3)
    said = [str(message["content"]) for message in session.view()]
    return {n for n in NUMBERS if any(text.startswith(f"answer {n}:") for text in said)}


@requirement("S4.prune.debug-info")
@pytest.mark.parametrize(
    ("percent", "priorities", "kept"),
    [
        (88, {}, {2, 5, 6, 7}),
        (88, {"always_prune": []}, {4, 5, 6, 7}),
        (50, {}, {4, 5, 6, 7}),
    ],
)
def test_what_always_goes_leaves_first_in_the_danger_zone_unless_the_matrix_says_otherwise(
    percent: float, priorities: dict[str, Any], kept: set[int]
) -> None:
    assert collected(percent, priorities) == kept
