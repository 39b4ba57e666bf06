"""Recall and undo: the same bytes in the same place."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ctxgc.core import Format
from ctxgc.errors import PlanError, UnknownHandleError
from ctxgc.session import RECALL_CALL, Session
from ctxgc.session.state import UNDO_COOLDOWN
from ctxgc.testing import check_history
from tests.collector.agent import FIXED, LONG, Agent, Step, drive, opened
from tests.session.build import events_of, filled, make, requests_in
from tests.session.random_walk import faults, handles
from tests.strategies.build import turn

SMALL = {
    "plugin": "gc_mark_sweep",
    "recent_messages": 2,
    "recent_user_messages": 1,
    "recent_files": 0,
}


def collected(**options: Any) -> tuple[Session, list[Any]]:
    """Return a session in which results were evacuated, and the view before."""
    session = filled(12, tools=1, **{**SMALL, **options})
    before = session.view()
    session.collect(session.usage().total_tokens - 200)
    assert len(session.view()) == len(before)
    return session, before


def test_a_tombstone_names_a_handle_that_brings_the_result_back_into_its_place() -> None:
    session, before = collected()
    stubs = [n for n, m in enumerate(session.view()) if "context_recall" in str(m)]
    assert stubs
    for handle in handles(session):
        session.recall(handle)
    assert session.view() == before
    assert handles(session) == []


def test_a_recalled_message_is_held_for_some_collections_and_no_longer() -> None:
    session, _ = collected(recall_hold_collections=1)
    handle = handles(session)[0]
    held = session.recall(handle).message_id
    session.extend(turn(90, 300))
    session.collect(700)
    assert held in {m.message_id for m in session.history if m.role == "tool"}
    assert handle not in handles(session)
    session.extend(turn(91, 300))
    session.collect(500)
    shown = {m.message_id: m for m in session.history}
    assert held not in shown or handle in handles(session)


def test_what_left_with_its_group_comes_back_with_it() -> None:
    session = filled(12, tools=1, preserve_recent_turns=1)
    output = session.history[6]
    (segment,) = [s for s in session.segments() if s.message_id == output.message_id]
    before = session.view()
    session.collect(400)
    assert output not in session.history
    session.recall(segment.segment_id)
    view = session.view()
    assert check_history(view, "openai") == []
    assert before[6] in view
    assert before[5] in view
    assert view.index(before[5]) + 1 == view.index(before[6])


def test_an_unknown_handle_says_how_to_find_things() -> None:
    session = filled(2)
    with pytest.raises(UnknownHandleError, match=r"no segment with the handle 'h-none' \(search"):
        session.recall("h-none")


def test_undo_gives_the_view_back_with_what_came_in_since() -> None:
    session, before = collected()
    session.extend(turn(50))
    seen = events_of(session)
    session.undo()
    assert session.view() == [*before, *turn(50)]
    assert faults(session) == []
    assert [event.kind for event in seen][-1] == "undone"
    with pytest.raises(PlanError, match="no collection to undo"):
        session.undo()


def test_collections_are_undone_one_by_one() -> None:
    session = filled(12, tools=1, **SMALL)
    views = [session.view()]
    for target in (1_500, 1_000, 600):
        session.collect(target)
        views.append(session.view())
    for view in reversed(views[:-1]):
        session.undo()
        assert session.view() == view
        assert faults(session) == []


def test_an_undo_after_a_recall_loses_no_original() -> None:
    session, before = collected()
    handle = handles(session)[0]
    text = session.read(handle)
    session.collect(500)
    session.recall(handle)
    session.undo()
    session.undo()
    assert session.read(handle) == text
    assert session.view() == before
    assert faults(session) == []


def test_thinking_behind_a_change_is_stripped_for_models_that_bind_it() -> None:
    session = make(plugin="gc_truncate", model="claude-opus-5-5", preserve_recent_turns=1)
    for number in range(12):
        session.extend(_thoughtful(number), format="anthropic")
    result = session.collect(400)
    stays = session.view()[1:]
    assert "thinking" not in {b["type"] for m in stays for b in m["content"] if isinstance(b, dict)}
    assert "thinking bound to what changed before it" in {
        item.reason for item in result.removal_list
    }
    assert faults(session) == []
    session.undo()
    thoughts = [b for m in session.view() for b in m["content"] if isinstance(b, dict)]
    assert sum(block["type"] == "thinking" for block in thoughts) == 12


def test_thinking_stays_for_models_that_do_not_bind_it() -> None:
    session = make(plugin="gc_truncate", preserve_recent_turns=1, model="claude-opus-4-6")
    for number in range(12):
        session.extend(_thoughtful(number), format="anthropic")
    session.collect(400)
    assert "signature" in str(session.view()[-1])


def _thoughtful(number: int) -> list[dict[str, Any]]:
    thinking = {"type": "thinking", "thinking": f"thought {number}", "signature": "c2ln"}
    answer = {"type": "text", "text": "word " * 60 + f"answer {number}"}
    return [
        {"role": "user", "content": f"request {number} " + "word " * 60},
        {"role": "assistant", "content": [thinking, answer]},
    ]


def test_searching_finds_what_left_and_the_hit_recalls_it() -> None:
    session = make(preserve_recent_turns=1)
    session.extend(turn(0))
    session.append({"role": "user", "content": "the lease counter lives in pool.rs:42"})
    for number in range(1, 12):
        session.extend(turn(number))
    session.collect(300)
    assert "pool.rs" not in str(session.view())
    hit = session.search("pool.rs lease counter")[0]
    assert session.recall(hit.handle).text == "the lease counter lives in pool.rs:42"
    assert "pool.rs:42" in str(session.view())
    assert requests_in(session)[0] == 0


def edited(session: Session, message_ids: Iterable[str]) -> set[str]:
    """Return which of these messages are not shown as they came in."""
    return session.inspect().view.originals.keys() & set(message_ids)


def alone(session: Session) -> set[str]:
    return session.inspect().state.undone.left_alone(session.inspect().state.requests)


def undone_cut() -> tuple[Session, Agent, set[str]]:
    """Return a session whose last collection for the price was undone, and what that had moved."""
    session, agent = opened(plugin_config=FIXED), Agent()
    drive(session, LONG[:10], agent)
    moved = {m.message_id for m in session.inspect().log.applied[-1].before}
    session.undo()
    assert moved
    assert edited(session, moved) == set()
    return session, agent, moved


def test_what_was_undone_is_left_alone_for_a_while() -> None:
    rest: list[Step] = [("test", 30), ("grep", "harvest", 30)] * UNDO_COOLDOWN
    session, agent, moved = undone_cut()
    looks: list[bool] = []
    drive(session, rest, agent, each=lambda _: looks.append(bool(edited(session, moved))))
    assert not any(looks[:UNDO_COOLDOWN])
    assert any(looks)
    assert faults(session) == []


def test_otherwise_it_would_be_collected_again_at_once() -> None:
    session, agent, moved = undone_cut()
    session.inspect().state.undone.clear()
    drive(session, [("test", 30)] * 2, agent)
    assert edited(session, moved)


def test_other_messages_may_leave_meanwhile() -> None:
    session, agent, moved = undone_cut()
    before = len(session.inspect().log.applied)
    drive(session, LONG, agent)
    assert len(session.inspect().log.applied) > before
    assert edited(session, moved) == set()


def test_who_collects_by_hand_ends_it() -> None:
    session, agent, moved = undone_cut()
    session.collect(session.usage().total_tokens)
    assert alone(session) == set()
    drive(session, [("test", 30)] * 2, agent)
    assert edited(session, moved)


def test_what_was_undone_is_left_alone_after_a_restart_too(tmp_path: Path) -> None:
    store: dict[str, Any] = {"store": f"json:{tmp_path / 'stash.json'}", "session_id": "long"}
    agent = Agent()
    with opened(**store) as session:
        drive(session, LONG, agent)
        session.undo()
        left = alone(session)
        shown = edited(session, left)
    with opened(**store) as session:
        assert alone(session) == left != set()
        drive(session, LONG[:5], agent)
        assert edited(session, left) == shown != left


def test_in_a_window_that_fills_the_same_is_not_collected_again_at_once() -> None:
    session = make(2_000, "gc_mark_sweep")
    for number in range(40):
        session.extend(turn(number, 50, tools=1))
        if session.usage().percent_used >= session.config.threshold_percent:
            break
    session.messages()
    moved = {m.message_id for m in session.inspect().log.applied[-1].before}
    session.undo()
    shown = session.view()
    assert session.config.threshold_percent <= session.usage().percent_used
    assert session.messages() == shown
    while session.usage().percent_used < session.config.hard_limit_percent:
        assert edited(session, moved) == set()
        session.extend(turn(99, 20))
    session.messages()
    assert edited(session, moved)
    assert faults(session) == []


@pytest.mark.parametrize("format_", ["openai", "anthropic", "responses"])
def test_what_does_not_fit_the_window_is_not_brought_back(format_: Format) -> None:
    """It would be held in the view, and no request could be sent any more."""
    session = Session(4_000, store="memory:", recall_call=RECALL_CALL)
    session.append({"role": "user", "content": "read the log"}, format=format_)
    log = "\n".join(f"{number}: request {number * 7} took long" for number in range(1_500))
    ids = [i for message in _reading(log, format_) for i in session.append(message, format=format_)]
    view = session.messages()
    with pytest.raises(PlanError, match="does not fit") as caught:
        session.recall(ids[-1])
    assert "read(handle)" in str(caught.value)
    assert session.view() == view
    assert log in str(session.read(ids[-1]))
    session.append({"role": "user", "content": "and now?"}, format=format_)
    assert check_history(session.messages(), format_) == []


def _reading(log: str, format_: Format) -> list[dict[str, Any]]:
    """Return a call and its result."""
    if format_ == "openai":
        call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": log},
        ]
    if format_ == "responses":
        return [
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": log},
        ]
    use = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": log}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
