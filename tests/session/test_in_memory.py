"""What is at work is held in memory: the store is asked for nothing while a session runs."""

from __future__ import annotations

import pytest

from ctxgc import Session
from ctxgc.errors import StoreError
from ctxgc.stores import open_store
from tests.requirements import requirement


@requirement("S0.storage.active-in-memory")
def test_active_segments_are_there_without_their_store(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("memory:")
    session = Session(10_000, store=store)
    said = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "yes"}]
    session.extend(said)
    session.flush()

    def gone(*_: object, **__: object) -> None:
        raise StoreError("the store is gone")

    for name in ("get", "load", "search", "commit"):
        monkeypatch.setattr(store, name, gone)
    session.append({"role": "user", "content": "still there?"})
    working = [segment for segment in session.segments() if segment.tier == "working"]
    assert [segment.text for segment in working] == ["hello", "yes", "still there?"]
    assert [message["content"] for message in session.view()] == ["hello", "yes", "still there?"]
    with pytest.raises(StoreError, match="the store is gone"):
        session.flush()
