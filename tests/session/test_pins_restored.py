"""Pins follow content: a restored checkpoint has the pins it was made with, also after a fork."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.session import Session
from tests.session.build import make
from tests.strategies.build import turn

Json = dict[str, Any]


def history(turns: int) -> list[Json]:
    return [message for number in range(turns) for message in turn(number, 40, tools=1)]


def forked_and_restored(name_of_pin: str, plugin: str = "gc_truncate") -> tuple[Session, Json]:
    """Return a session whose checkpoint with a pin was restored after a fork, and the pinned message."""
    sent = history(8)
    session = make(4_000, plugin, preserve_recent_turns=0, recent_messages=0)
    session.sync(sent)
    message = session.history[9]
    segments = [s for s in session.segments() if s.message_id == message.message_id]
    names = {"message": message.message_id, "segment": segments[0].segment_id}
    names["handle"] = session.inspect().stash.handle(segments[0].segment_id)
    session.pin(names[name_of_pin])
    made = session.checkpoint("before the fork")
    session.sync([*sent[:4], {"role": "user", "content": "Another way, then."}])
    session.restore(made.checkpoint_id)
    return session, sent[9]


@pytest.mark.parametrize("plugin", ["gc_truncate", "gc_mark_sweep", "gc_budget", "gc_hybrid"])
@pytest.mark.parametrize("name_of_pin", ["message", "segment", "handle"])
def test_a_pin_is_kept_by_a_restore_after_a_fork_before_it(name_of_pin: str, plugin: str) -> None:
    session, pinned = forked_and_restored(name_of_pin, plugin)
    session.collect(0)
    assert pinned in session.messages()


def test_a_restored_pin_can_be_taken_back() -> None:
    session, pinned = forked_and_restored("segment")
    (message,) = [m for m in session.history if m.data == pinned]
    for segment in session.segments():
        if segment.message_id == message.message_id and segment.tier == "working":
            session.unpin(segment.segment_id)
    session.collect(0)
    assert pinned not in session.messages()


def test_a_restored_pin_is_still_there_when_the_session_is_opened_again() -> None:
    session, pinned = forked_and_restored("segment")
    parts = session.inspect()
    session.flush()
    again = make(
        4_000, store=parts.archive.store, session_id=session.session_id,
        preserve_recent_turns=0, recent_messages=0,
    )  # fmt: skip
    again.collect(0)
    assert pinned in again.messages()
