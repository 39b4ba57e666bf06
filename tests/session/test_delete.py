"""Deletion: only when confirmed, for good, and no copy of the text stays behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxgc.collector import handles_in
from ctxgc.errors import InputError, StoreError, UnknownHandleError
from ctxgc.session import Session
from ctxgc.stores import MemoryStore, Write
from ctxgc.testing import check_history
from tests.session.build import events_of, filled, make, state_of
from tests.session.random_walk import faults, handles
from tests.strategies.build import turn

SECRET = "the passphrase is xyzzy-4711"


def with_secret(**options: Any) -> tuple[Session, str]:
    """Return a session with a secret in a result, and the id of that segment."""
    session = make(4_000, **options)
    session.extend(turn(0))
    messages = turn(1, tools=1)
    messages[2]["content"] = SECRET
    session.extend(messages)
    for number in range(2, 12):
        session.extend(turn(number))
    (segment,) = [s for s in session.segments() if s.text == SECRET]
    return session, segment.segment_id


def test_it_must_be_confirmed() -> None:
    session, segment_id = with_secret()
    state = state_of(session)
    with pytest.raises(InputError, match="must be confirmed"):
        session.delete([segment_id])
    assert state_of(session) == state


def test_in_the_view_a_marker_takes_the_place_of_the_text() -> None:
    session, segment_id = with_secret()
    seen = events_of(session)
    assert session.delete([segment_id], confirm=True) == [segment_id]
    assert SECRET not in str(session.view())
    assert session.view()[4]["content"] == "[ctxgc: deleted on request]"
    assert check_history(session.messages(), "openai") == []
    assert faults(session) == []
    assert [event.kind for event in seen][-1] == "deleted"
    with pytest.raises(UnknownHandleError):
        session.read(segment_id)


def test_what_stands_behind_a_deletion_no_longer_counts_as_sent() -> None:
    store = MemoryStore()
    session, segment_id = with_secret(store=store, session_id="s")
    session.messages()
    session.delete([segment_id], confirm=True)
    in_front = sum(map(session.inspect().accounting.tokens, session.history[:4]))
    resumed = make(4_000, store=store, session_id="s")
    for each in (session, resumed):
        assert (each.inspect().state.sent_messages, each.inspect().state.sent_before) == (
            4,
            in_front,
        )
    resumed.messages()
    assert resumed.inspect().state.sent_messages == len(resumed.history)


def test_a_deletion_that_failed_changes_nothing_that_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, segment_id = with_secret()
    session.messages()
    sent = (
        session.inspect().state.sent_messages,
        session.inspect().state.sent_before,
        session.inspect().editor.rewrites,
    )
    commit = session.inspect().archive.commit

    def fail(*writes: Write) -> None:
        if writes:
            raise StoreError("the disk is full")
        commit()

    monkeypatch.setattr(session.inspect().archive, "commit", fail)
    with pytest.raises(StoreError):
        session.delete([segment_id], confirm=True)
    assert SECRET in str(session.view())
    assert (
        session.inspect().state.sent_messages,
        session.inspect().state.sent_before,
        session.inspect().editor.rewrites,
    ) == sent


def test_what_left_the_view_is_deleted_with_its_way_back() -> None:
    session, segment_id = with_secret(preserve_recent_turns=1)
    session.collect(400)
    session.delete([segment_id], confirm=True)
    session.undo()
    assert SECRET not in str(session.view())
    assert faults(session) == []


def test_a_tombstone_loses_its_handle_when_what_it_stands_for_is_deleted() -> None:
    session = filled(
        12,
        tools=1,
        plugin="gc_mark_sweep",
        recent_messages=2,
        recent_user_messages=1,
        recent_files=0,
    )
    session.collect(session.usage().total_tokens - 200)
    handle = handles(session)[0]
    hit = session.inspect().stash.find(handle)
    session.delete([handle], confirm=True)
    assert handle not in handles(session)
    assert hit.segment_id not in {s.segment_id for s in session.segments()}
    assert faults(session) == []


def test_a_digest_tells_no_more_of_what_is_deleted() -> None:
    session, segment_id = with_secret(plugin="gc_mark_sweep", preserve_recent_turns=1)
    session.collect(400)
    (notice,) = [m for m in session.inspect().view.messages if m.origin == "gc_notice"]
    told = handles_in(notice.text())
    session.collect(350)
    session.delete([segment_id], confirm=True)
    (notice,) = [m for m in session.inspect().view.messages if m.origin == "gc_notice"]
    assert SECRET not in str(session.view())
    # A range names the call of a result too.
    left = set(told) - set(handles_in(notice.text()))
    assert 1 <= len(left) <= 2
    assert faults(session) == []


@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_no_copy_stays_in_the_store(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "stash"
    session, segment_id = with_secret(
        store=f"{kind}:{path}", session_id="s", preserve_recent_turns=1
    )
    session.collect(400)
    session.recall(segment_id)
    session.collect(0)
    session.delete([segment_id], confirm=True)
    session.close()
    with make(store=f"{kind}:{path}", session_id="s") as again:
        store = again.inspect().archive.store
        for collection in ("segments", "messages", "collections", "state", "checkpoints"):
            assert SECRET not in str(store.load("s", collection)), collection
        assert faults(again) == []


def test_a_pin_protects_from_deletion_too() -> None:
    session, segment_id = with_secret()
    session.pin(segment_id)
    with pytest.raises(InputError, match="is pinned"):
        session.delete([segment_id], confirm=True)
    session.unpin(segment_id)
    assert session.delete([segment_id], confirm=True) == [segment_id]


def test_a_call_cannot_be_deleted_from_under_its_result() -> None:
    session, _ = with_secret()
    call = session.history[3]
    (segment,) = [s for s in session.segments() if s.message_id == call.message_id]
    state = state_of(session)
    with pytest.raises(InputError, match="tool_call that its message needs"):
        session.delete([segment.segment_id], confirm=True)
    assert state_of(session) == state


def test_a_message_stays_when_a_part_that_it_shows_no_longer_is_deleted(tmp_path: Path) -> None:
    store: dict[str, Any] = {"store": f"json:{tmp_path / 'stash.json'}", "session_id": "s"}
    session = make(model="claude-opus-5-5", preserve_recent_turns=1, **store)
    for number in range(8):
        thinking = {"type": "thinking", "thinking": f"thought {number}", "signature": "c2ln"}
        answer = [thinking, {"type": "text", "text": "word " * 60 + "done"}]
        session.append({"role": "user", "content": f"request {number}"}, format="anthropic")
        session.append({"role": "assistant", "content": answer}, format="anthropic")
    session.collect(200)
    view = session.view()
    (last,) = [s for s in session.segments() if s.text == "thought 7"]
    session.delete([last.segment_id], confirm=True)
    assert session.view() == view
    session.close()
    with make(**store) as again:
        assert again.view() == view
        assert faults(again) == []
