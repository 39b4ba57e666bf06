"""In the danger zone S4's priorities rank what a session lets go, by the configured matrix."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc import GCConfig, Session
from ctxgc.session import RECALL_CALL
from ctxgc.wire import Overflow
from tests.requirements import requirement

NUMBERS = range(8)


def talk(limit: int, priorities: dict[str, Any], **more: float) -> Session:
    """Return a session with a talk, two answers of which are for debugging only."""
    config = GCConfig(
        **{"threshold_percent": 90, **more}, priorities=priorities, recent_messages=2,
        recent_user_messages=1, preserve_recent_turns=0,
    )  # fmt: skip
    session = Session(limit, config=config, store="memory:", recall_call=RECALL_CALL)
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


def told(session: Session) -> list[str]:
    return [str(message["content"]) for message in session.view()]


@pytest.mark.parametrize(
    ("priorities", "kept"),
    [
        ({}, ["question 0", "question 6", "question 7", "question 8"]),
        ({"always_keep": []}, ["question 0", "question 8"]),
    ],
)
def test_in_danger_a_session_does_not_give_up_what_always_stays(
    priorities: dict[str, Any], kept: list[str]
) -> None:
    used = talk(100_000, {}).usage().total_tokens
    session = talk(int(used / 0.88), priorities, threshold_percent=86, target_percent=2)
    session.append({"role": "user", "content": "question 8"})
    session.messages()
    assert [text for text in told(session) if text.startswith("question")] == kept


@pytest.mark.parametrize("plugin", ["gc_mark_sweep", "gc_truncate", "gc_budget", "gc_hybrid"])
@pytest.mark.parametrize("limit", [2_000, 100_000])
def test_a_configured_rule_of_what_always_stays_holds_in_every_zone_and_strategy(
    limit: int, plugin: str
) -> None:
    rule = {"name": "contract", "kinds": ["law"]}
    config = GCConfig(
        priorities={"always_keep": [rule]}, preserve_recent_turns=0, recent_messages=1
    )
    session = Session(limit, config=config, store="memory:", plugin=plugin)
    for number in range(8):
        session.append({"role": "user", "content": f"question {number}"})
        tags = ["law"] if number == 2 else []
        session.append(
            {"role": "assistant", "content": f"answer {number} " + "word " * 90}, tags=tags
        )
    session.append({"role": "user", "content": "and now?"})
    session.collect(10)
    assert [text[:8] for text in told(session) if text.startswith("answer")] == ["answer 2"]
    session.messages()
    session.recover(Overflow(kind="tokens", used=1_000, limit=900))
    assert "answer 2" in "".join(told(session))
