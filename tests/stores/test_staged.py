"""A staged store lets several commits become one, or none."""

from __future__ import annotations

import pytest

from ctxgc.errors import StoreBusyError
from ctxgc.stores import Drop, MemoryStore, Put, StagedStore


def staged() -> tuple[MemoryStore, StagedStore]:
    """Return a store with one document, and one in front of it."""
    store = MemoryStore()
    store.commit("s", [Put("state", "a", {"n": 1})])
    front = StagedStore(store, "s")
    front.base = store.revision("s")
    return store, front


def test_what_is_committed_is_seen_in_front_and_written_in_one_piece() -> None:
    store, front = staged()
    assert front.commit("s", [Put("state", "b", {"n": 2})], expect=1) == 2
    assert front.commit("s", [Drop("state", "a"), Put("state", "b", {"n": 3})], expect=2) == 3
    assert front.load("s", "state") == [("b", {"n": 3})]
    assert (front.get("s", "state", "a"), front.get("s", "state", "b")) == (None, {"n": 3})
    assert store.load("s", "state") == [("a", {"n": 1})]
    front.write([Put("state", "c", {"n": 4})])
    assert store.load("s", "state") == [("b", {"n": 3}), ("c", {"n": 4})]
    assert (store.revision("s"), front.base) == (2, 2)


def test_nothing_is_written_where_somebody_else_wrote_meanwhile() -> None:
    store, front = staged()
    front.commit("s", [Put("state", "b", {"n": 2})], expect=1)
    store.commit("s", [Put("state", "z", {"n": 9})])
    with pytest.raises(StoreBusyError):
        front.write()
    assert store.load("s", "state") == [("a", {"n": 1}), ("z", {"n": 9})]


def test_other_sessions_are_written_at_once() -> None:
    store, front = staged()
    assert front.commit("t", [Put("state", "a", {"n": 5})]) == 1
    assert front.load("t", "state") == store.load("t", "state") == [("a", {"n": 5})]
    assert [info.session_id for info in front.sessions()] == ["s", "t"]


def test_a_session_that_is_dropped_takes_along_what_is_staged() -> None:
    store, front = staged()
    front.commit("s", [Put("state", "b", {"n": 2})], expect=1)
    front.drop_session("s")
    assert front.load("s", "state") == []
    front.write()
    assert store.revision("s") == 0
