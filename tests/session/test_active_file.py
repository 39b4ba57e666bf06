"""The active file is a root in a session while there is room; an emergency says what had to go."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctxgc import GCConfig, Session
from ctxgc.session import RECALL_CALL
from tests.strategies.build import rows, step

PATH = "src/cart.py"
WINDOW = 12_000


def play(
    session: Session,
    first: str,
    *,
    then: Callable[[Session], None] | None = None,
) -> str:
    """Read a file first, then others; return the segment of that first result."""
    session.append({"role": "user", "content": "Fix the cart."})
    *_, segment_id = [i for m in step(0, first, path=PATH) for i in session.append(m)]
    session.messages()
    if then is not None:
        then(session)
    for number in range(1, 24):
        session.extend(step(number, rows(f"x{number}", 40), path=f"src/other_{number}.py"))
        session.messages()
    return segment_id


def tier_of(session: Session, segment_id: str) -> str:
    return session.inspect().heap.get(segment_id).tier


def test_the_active_file_stays_however_long_it_is_idle() -> None:
    with Session(WINDOW, store="memory:", recall_call=RECALL_CALL) as session:
        shown = play(session, rows("cart", 30), then=lambda s: s.set_active_file(PATH))
        assert any(result.tokens_freed for result in session.gc_history)
        assert tier_of(session, shown) == "working"


def test_the_same_file_leaves_once_it_is_not_the_active_one() -> None:
    with Session(WINDOW, store="memory:", recall_call=RECALL_CALL) as session:
        shown = play(session, rows("cart", 30))
        assert tier_of(session, shown) == "stashed"
        assert "file in work" in str(_evidence(session, shown))


@pytest.mark.parametrize("plugin", ["gc_truncate", "gc_budget"])
def test_an_emergency_says_how_many_tokens_had_to_go(plugin: str) -> None:
    config = GCConfig(preserve_recent_turns=50)
    with Session(WINDOW, config=config, plugin=plugin, store="memory:") as session:
        play(session, rows("cart", 30))
        said = {
            str(item.evidence)
            for result in session.gc_history
            if result.plugin_name == "guard"
            for item in result.removal_list
        }
        assert said
        assert not any(": 0 tokens" in each for each in said)


def _evidence(session: Session, segment_id: str) -> object:
    message_id = session.inspect().heap.get(segment_id).message_id
    return next(
        item.evidence
        for result in session.gc_history
        for item in result.removal_list
        if message_id in item.message_ids
    )
