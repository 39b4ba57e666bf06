"""A session goes on after a restart: same view, pins, books, handles, and undo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxgc.budget import GCPolicy, InstructionSource
from ctxgc.session import Session, open_store
from tests.session.build import filled, make
from tests.session.random_walk import children, faults, handles
from tests.stores.between import Between
from tests.strategies.build import turn

OPTIONS: dict[str, Any] = {
    "plugin": "gc_mark_sweep", "recent_messages": 2, "recent_user_messages": 1, "recent_files": 0,
}  # fmt: skip


@pytest.fixture(params=["json", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}:{tmp_path / 'stash'}"


def worked(store: str, session_id: str = "work") -> Session:
    session = filled(12, tools=1, store=store, session_id=session_id, **OPTIONS)
    session.set_system("Be careful.")
    session.set_tools([{"name": "bash", "input_schema": {}}])
    session.pin(session.history[7].message_id)
    session.set_policy(session.history[9].message_id, GCPolicy.PRESERVABLE)
    session.collect(1_000)
    session.extend(turn(20))
    return session


def seen(session: Session) -> dict[str, Any]:
    return {
        "view": session.view(),
        "ids": [m.message_id for m in session.history],
        "pins": session.usage().pinned_message_ids,
        "budget": sorted(str(child.to_dict()) for child in children(session)),
        "history": [result.to_dict() for result in session.gc_history],
        "texts": {s.segment_id: (s.text, s.tier, s.pinned) for s in session.segments()},
        "handles": handles(session),
    }


def test_a_closed_session_continues_as_it_was(store: str) -> None:
    session = worked(store)
    before = seen(session)
    session.close()
    with make(store=store, session_id="work", limit=None, **OPTIONS) as again:
        assert seen(again) == before
        assert again.context_limit == 2_000
        assert faults(again) == []
        assert all(again.read(handle) for handle in before["handles"])


def test_a_session_that_is_opened_while_another_process_collects_is_seen_whole() -> None:
    store = Between()
    session = filled(12, tools=1, store=store, session_id="work", **OPTIONS)
    session.flush()
    store.happens(lambda: session.collect(1_000))
    again = make(store=store, session_id="work", limit=None, **OPTIONS)
    assert seen(again) == seen(session)
    assert faults(again) == []
    again.append({"role": "user", "content": "Go on."})
    again.flush()


def test_undo_and_recall_work_after_a_restart(store: str) -> None:
    session = worked(store)
    collected = session.view()
    session.close()
    with make(store=store, session_id="work", **OPTIONS) as again:
        again.recall(handles(again)[0])
        again.undo()
        assert len(again.view()) == 12 * 4 + 2
        assert "[ctxgc:" not in str(again.view())
        assert faults(again) == []
    assert again.view() != collected


def test_what_was_sent_is_there_after_a_crash(store: str) -> None:
    session = worked(store)
    session.messages()
    before = session.view()
    with make(store=store, session_id="work", **OPTIONS) as again:
        assert again.view() == before
        assert faults(again) == []
    # The first process lost its session to the second, and is told so before it overwrites anything.
    session.inspect().archive.store.close()


def test_sync_goes_on_where_the_host_is_after_a_restart(store: str) -> None:
    story = [message for number in range(12) for message in turn(number, tools=1)]
    first = make(store=store, session_id="s", **OPTIONS)
    first.sync(story)
    first.collect(900)
    first.close()
    with make(store=store, session_id="s", **OPTIONS) as again:
        view = again.view()
        assert again.sync(story) == []
        assert again.view() == view
        assert len(again.sync([*story, *turn(12)])) == 2


def test_sessions_of_one_store_do_not_see_each_other(store: str) -> None:
    one, other = worked(store, "one"), make(store=store, session_id="other", **OPTIONS)
    other.append({"role": "user", "content": "private words"})
    other.close()
    assert one.search("private words") == []
    one.close()


def test_numbers_are_never_used_again(store: str) -> None:
    options: dict[str, Any] = {
        "plugin": "gc_summarize", "preserve_recent_turns": 1, "store": store, "session_id": "n",
        "plugin_config": {"summarizer": lambda text: "Brief."},
    }  # fmt: skip
    session = filled(8, **options)
    session.collect(300)
    session.undo()
    session.close()
    with make(**options) as again:
        again.collect(300)
        names = [m.message_id for m in again.history if m.origin == "gc_summary"]
        assert names == ["gc_summary_2"]
        child = again.budget.get_child(InstructionSource.CONVERSATION, "gc_summary_2")
        assert child is not None
        assert child.metadata == {"created_by": "gc_summarize"}


def test_a_result_that_comes_after_a_restart_knows_the_file_and_the_bond_of_its_call() -> None:
    call = {"name": "read_file", "arguments": '{"path": "cart.py"}'}
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "Fix the cart"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "total = 0"},
    ]
    store = open_store("memory:")
    one = Session(1_000, store=store, session_id="s", plugin="gc_none")
    one.extend(history[:2])
    one.flush()
    again = Session(1_000, store=store, session_id="s", plugin="gc_none")
    again.append(history[2])
    asked, result = again.segments()[1:]
    assert (result.file_path, result.access, result.type) == ("cart.py", "read", "code")
    assert result.bond_id == asked.bond_id is not None
