"""A store that fails: what raises has changed nothing, and can be done again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctxgc.budget import GCPolicy
from ctxgc.errors import StoreError
from ctxgc.session import Session
from tests.session.build import Flaky, filled, make, state_of
from tests.session.random_walk import faults, handles
from tests.strategies.build import turn

Act = Callable[[Session], object]


def started() -> tuple[Session, Flaky]:
    """Return a session with two collections behind it, and a checkpoint with another pin than now."""
    store = Flaky()
    session = filled(
        12, tools=1, store=store, session_id="s", plugin="gc_mark_sweep", recent_messages=2,
        recent_user_messages=1, recent_files=0,
    )  # fmt: skip
    session.pin(session.history[2].message_id)
    session.checkpoint("here")
    session.unpin(session.history[2].message_id)
    session.pin(session.history[6].message_id)
    for more in (12, 13):
        session.collect(session.usage().total_tokens - 200)
        session.extend(turn(more, tools=1))
    session.flush()
    return session, store


def known(session: Session) -> dict[str, Any]:
    """Return what a failure must leave alone."""
    inside = session.inspect()
    state = inside.state
    return {
        **state_of(session),
        "collections": len(inside.log.applied),
        "held": (dict(state.held_until), state.undone.to_doc()),
        "policies": dict(state.policies),
        "first": inside.accounting._first_request,
        "cost": (state.savings.savings, state.ghosts.to_doc()),
        "thrashing": state.thrashing.to_doc(),
    }


ACTS: dict[str, Act] = {
    "undo": lambda session: session.undo(),
    "recall": lambda session: session.recall(handles(session)[0]),
    "pin": lambda session: session.pin(session.history[-1].message_id),
    "unpin": lambda session: session.unpin(*session.inspect().state.pinned_messages),
    "set_policy": lambda session: session.set_policy(
        session.history[-1].message_id, GCPolicy.PRESERVABLE
    ),
    "restore": lambda session: session.restore(session.checkpoints()[0].checkpoint_id),
    "collect": lambda session: session.collect(session.usage().total_tokens - 200),
    "delete": lambda session: session.delete([session.segments()[-1].segment_id], confirm=True),
}


@pytest.mark.parametrize("act", ["undo", "recall", "pin", "unpin", "set_policy", "restore"])
def test_it_is_one_commit(act: str) -> None:
    session, store = started()
    before = store.commits
    ACTS[act](session)
    assert store.commits == before + 1


@pytest.mark.parametrize("act", ACTS)
def test_what_raises_has_changed_nothing_and_can_be_done_again(act: str) -> None:
    calm, store = started()
    asked = store.commits
    ACTS[act](calm)
    needed = store.commits - asked
    assert needed > 0
    for number in range(1, needed + 1):
        session, store = started()
        before = known(session)
        store.fails_at = store.commits + number
        with pytest.raises(StoreError):
            ACTS[act](session)
        assert known(session) == before
        assert faults(session) == []
        ACTS[act](session)
        session.flush()
        again = make(store=store, session_id="s", plugin="gc_mark_sweep")
        assert (again.view(), again.usage().pinned_message_ids) == (
            session.view(), session.usage().pinned_message_ids,
        )  # fmt: skip


def test_a_collection_that_fails_leaves_the_cool_down_of_an_undo_alone() -> None:
    session, store = started()
    session.undo()
    before = session.inspect().state.undone.to_doc()
    assert before
    store.fail_next()
    with pytest.raises(StoreError):
        session.collect(session.usage().total_tokens - 200)
    assert session.inspect().state.undone.to_doc() == before


def test_a_deletion_of_many_says_which_are_gone_when_it_fails() -> None:
    session, store = started()
    names = [s.segment_id for s in session.segments() if s.part == "tool_result"][-3:]
    store.fails_at = store.commits + 2
    with pytest.raises(StoreError) as failure:
        session.delete(names, confirm=True)
    gone = failure.value.details["deleted"]
    assert gone == names[: len(gone)]
    rest = [name for name in names if name not in gone]
    assert session.delete(rest, confirm=True) == rest
    assert faults(session) == []
