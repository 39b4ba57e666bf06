"""The state of a session: one struct, one document, put back whole when a change fails."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.economics import SavingsLedger
from ctxgc.errors import StoreDamagedError, StoreError
from ctxgc.session.state import SessionState
from ctxgc.stores import MemoryStore
from tests.session.build import Flaky, filled

KEYS = [
    "context_limit", "secret", "summaries", "turns_taken", "numbered", "ingested_tokens",
    "pinned_messages", "held_until", "undone", "requests", "sent_messages", "sent_before", "sent_at",
    "stuck_at", "ghosts", "thrash", "thrashing", "savings", "task_id", "task_dependencies",
    "active_file", "active_range", "zone", "triggers", "step", "opened", "first_request", "policies",
    "beside", "format", "recall_calls", "calibrations", "probation", "changes",
]  # fmt: skip


def _state(**doc: Any) -> SessionState:
    return SessionState.from_doc(doc, SavingsLedger("none", 1_000))


def test_the_keys_of_the_document_and_their_order_stay() -> None:
    assert list(_state().to_doc()) == KEYS


def test_what_an_older_version_did_not_store_has_its_default() -> None:
    doc = _state(requests=3, unknown="of a newer version").to_doc()
    assert doc["requests"] == 3
    assert {key: doc[key] for key in ("zone", "undone", "ghosts", "sent_at", "policies")} == {
        "zone": "safe", "undone": {}, "ghosts": {}, "sent_at": None, "policies": {},
    }  # fmt: skip
    assert "unknown" not in doc


def test_a_stored_state_reads_and_writes_the_same_document() -> None:
    store = MemoryStore()
    session = filled(12, tools=1, store=store, session_id="a")
    session.set_task("t", depends_on=["y", "x"])
    session.set_active_file("src/a.py", (3, 9))
    session.pin(session.history[2].message_id)
    session.messages()
    session.collect(400)
    session.undo()
    session.flush()
    doc = store.get("a", "state", "session")
    assert doc is not None
    assert (doc["task_dependencies"], doc["active_range"]) == (["x", "y"], [3, 9])
    assert _state(**doc).to_doc() == doc


def test_a_document_that_is_damaged_is_refused() -> None:
    with pytest.raises(StoreDamagedError, match="requests"):
        _state(requests="many")
    with pytest.raises(StoreDamagedError):
        _state(undone=["not", "a", "mapping"])


def test_the_state_is_put_back_whole_when_a_change_fails() -> None:
    session = filled(12, store=(store := Flaky()))
    session.messages()
    before = session.inspect().state.to_doc()
    store.fail_next()
    with pytest.raises(StoreError):
        session.messages()
    after = session.inspect().state.to_doc()
    assert after == before


def test_a_time_whose_offset_has_seconds_is_read_again() -> None:
    said = "2026-01-01T12:00:00+00:53:28"
    assert _state(sent_at=said).to_doc()["sent_at"] == said
