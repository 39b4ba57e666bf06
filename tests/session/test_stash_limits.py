"""The stash is collected by age, by size and by what can still be reached."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc import GCConfig, Session
from ctxgc.errors import UnknownHandleError
from ctxgc.session import RECALL_CALL
from tests.fakes import Clock
from tests.session.random_walk import faults, handles

LIMIT = 20_000


def session(clock: Clock, **keys: Any) -> Session:
    given: dict[str, Any] = {
        "recent_messages": 1, "recent_user_messages": 1, "preserve_recent_turns": 0,
    }  # fmt: skip
    made = Session(
        LIMIT,
        config=GCConfig(**{**given, **keys}),
        store="memory:",
        clock=clock,
        recall_call=RECALL_CALL,
    )
    made.append({"role": "user", "content": "start"})
    return made


def talk(made: Session, *names: str) -> None:
    """Add a turn for each name."""
    for name in names:
        made.append({"role": "assistant", "content": f"{name} " * 200})
        made.append({"role": "user", "content": f"after {name}"})


def stashed(made: Session) -> list[str]:
    """Return the first words of what is in the stash, in order."""
    return [s.text.split()[0] for s in made.segments() if s.tier == "stashed"]


def test_what_is_too_old_is_deleted() -> None:
    clock = Clock()
    made = session(clock)
    talk(made, "old1", "old2")
    clock.wait(days=2)
    talk(made, "new1", "new2", "last")
    made.collect(100)
    assert {"old1", "old2", "new1", "new2"} <= set(stashed(made))
    gone = made.collect_stash(max_age_seconds=86_400.0)
    assert gone
    assert {"old1", "old2"}.isdisjoint(stashed(made))
    assert {"new1", "new2"} <= set(stashed(made))
    for name in gone:
        with pytest.raises(UnknownHandleError):
            made.read(name)
    assert faults(made) == []


def test_the_oldest_go_until_the_rest_fits() -> None:
    made = session(Clock())
    talk(made, "aaa1", "bbb2", "ccc3", "last")
    made.collect(100)
    texts = [s.text for s in made.segments() if s.tier == "stashed"]
    made.collect_stash(max_bytes=1_700)
    left = [s.text for s in made.segments() if s.tier == "stashed"]
    assert left == texts[-len(left) :]
    assert sum(map(len, left)) <= 1_700 < sum(map(len, texts[-len(left) - 1 :]))


def test_nothing_goes_without_a_limit() -> None:
    made = session(Clock())
    talk(made, "aaa1", "bbb2", "last")
    made.collect(100)
    before = stashed(made)
    assert made.collect_stash() == []
    assert stashed(made) == before != []


def test_limits_of_the_configuration_hold_by_themselves_after_a_collection() -> None:
    made = session(Clock(), stash_max_bytes=1)
    talk(made, "aaa1", "bbb2", "last")
    made.collect(100)
    made.messages()
    assert stashed(made) == []


def test_what_a_tombstone_names_stays_whatever_the_limits_say() -> None:
    clock = Clock()
    made = session(clock)
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    for number in range(3):
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        made.append({"role": "assistant", "content": None, "tool_calls": calls})
        rows = "\n".join(f"row {number} {n}" for n in range(200))
        made.append({"role": "tool", "tool_call_id": f"c{number}", "content": rows})
    talk(made, "last")
    made.collect(900)
    named = handles(made)
    assert named
    clock.wait(days=400)
    made.collect_stash(max_age_seconds=1.0, max_bytes=1)
    assert handles(made) == named
    assert all(made.read(handle).startswith("row ") for handle in named)
    assert faults(made) == []


def test_what_a_checkpoint_shows_stays_until_the_checkpoint_goes() -> None:
    made = session(Clock())
    talk(made, "aaa1", "last")
    before = made.view()
    checkpoint = made.checkpoint("keep")
    talk(made, "bbb2", "last2")
    made.collect(100)
    assert made.collect_stash(max_bytes=1)
    assert "aaa1" in stashed(made)
    assert "bbb2" not in stashed(made)
    made.restore(checkpoint.checkpoint_id)
    assert made.view() == before
    assert faults(made) == []


def test_what_was_recalled_is_held_for_some_collections_and_then_decays() -> None:
    made = session(Clock(), recall_hold_collections=2)
    talk(made, "precious", "other", "last")
    made.collect(100)
    (segment,) = [s for s in made.segments() if s.text.startswith("precious")]
    assert made.recall(segment.segment_id).text == segment.text
    seen = []
    for number in range(4):
        talk(made, f"filler{number}")
        assert made.collect(100).tokens_freed > 0
        seen.append(
            made.segments()[[s.segment_id for s in made.segments()].index(segment.segment_id)].tier
        )
    assert seen == ["working", "working", "stashed", "stashed"]
