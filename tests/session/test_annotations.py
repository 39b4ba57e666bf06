"""Annotations: what is said about a message makes it a root of every strategy, and survives a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxgc import Session
from ctxgc.budget import GCPolicy, InstructionSource
from ctxgc.errors import (
    InputError,
    SegmentError,
    StoreError,
    UnknownHandleError,
    UnknownSegmentError,
)
from tests.collector.agent import LONG, drive, opened
from tests.fakes import Clock, WordCounter
from tests.requirements import requirement
from tests.session.build import Flaky, events_of, filled, make, state_of
from tests.session.random_walk import faults
from tests.session.test_pins import COLLECTORS
from tests.session.test_secrets import CANARY
from tests.strategies.build import turn, words

SAID: dict[str, Any] = {
    "type": "decision",
    "tags": ["billing", "q3"],
    "topic_id": "invoices",
    "task_id": "T-1",
    "policy": GCPolicy.PRESERVABLE,
}
CHOICE = {"role": "user", "content": "We use cents, never floats. " + words(40)}


def with_one_marked(plugin: str, **said: Any) -> tuple[Session, str]:
    """Return a session whose third message is annotated, and the id of that message."""
    session = filled(1, plugin=plugin, preserve_recent_turns=0, recent_messages=0)
    (segment_id,) = session.append(CHOICE, **said)
    for number in range(1, 10):
        session.append({"role": "assistant", "content": f"step {number} " + words(40)})
        session.extend(turn(number))
    return session, message_of(session, segment_id)


def is_there_after_more_work(session: Session, message_id: str) -> bool:
    """Tell whether a message outlives a collection after the work has gone on."""
    for number in range(20, 30):
        session.extend(turn(number))
    session.collect(0)
    return message_id in {m.message_id for m in session.history}


def message_of(session: Session, segment_id: str) -> str:
    """Return the message of a segment."""
    return str(next(s for s in session.segments() if s.segment_id == segment_id).message_id)


def said_of(session: Session, segment_id: str) -> dict[str, Any]:
    """Return what is said about a segment."""
    found = next(s for s in session.segments() if s.segment_id == segment_id)
    return {name: getattr(found, name) for name in SAID}


WRITTEN = {**SAID, "tags": ("billing", "q3"), "policy": "preservable"}


@pytest.mark.parametrize("scheme", ["memory:", "json", "sqlite"])
@pytest.mark.parametrize("later", [False, True])
def test_what_is_said_survives_a_restart(scheme: str, later: bool, tmp_path: Path) -> None:
    store: Any = Flaky() if scheme == "memory:" else f"{scheme}:{tmp_path}/stash"
    options: dict[str, Any] = {"store": store, "session_id": "s", "counter": WordCounter()}
    session = Session(2_000, **options)
    (segment_id,) = session.append(CHOICE, **({} if later else SAID))
    if later:
        session.annotate(segment_id, **SAID)
    session.close()
    again = Session(2_000, **options)
    assert said_of(again, segment_id) == WRITTEN
    child = again.budget.get_child(InstructionSource.CONVERSATION, message_of(again, segment_id))
    assert child is not None
    assert child.gc_policy is GCPolicy.PRESERVABLE
    assert faults(again) == []


@requirement("S1.roots.recent-decisions")
@pytest.mark.parametrize("plugin", COLLECTORS)
def test_a_decision_stays_for_an_hour(plugin: str) -> None:
    session, message_id = with_one_marked(plugin, type="decision")
    session.collect(0)
    session.relieve(0)
    assert message_id in {m.message_id for m in session.history}
    clock = session.inspect().options.clock
    assert isinstance(clock, Clock)
    clock.wait(hours=1)
    assert not is_there_after_more_work(session, message_id)


@requirement("S0.roots.session-invariants")
@pytest.mark.parametrize("plugin", COLLECTORS)
def test_an_invariant_stays_for_the_whole_session(plugin: str) -> None:
    session, message_id = with_one_marked(plugin)
    session.annotate(message_id, tags=["invariant"])
    clock = session.inspect().options.clock
    assert isinstance(clock, Clock)
    clock.wait(days=3)
    session.collect(0)
    assert message_id in {m.message_id for m in session.history}
    session.annotate(message_id, tags=[])
    assert not is_there_after_more_work(session, message_id)


@requirement("S0.roots.current-task", "S1.roots.current-task")
@pytest.mark.parametrize("plugin", COLLECTORS)
def test_the_current_task_stays_until_another_is(plugin: str) -> None:
    session, message_id = with_one_marked(plugin, task_id="T-1")
    session.set_task("T-1")
    session.collect(0)
    assert message_id in {m.message_id for m in session.history}
    session.set_task(None)
    assert not is_there_after_more_work(session, message_id)


def test_what_comes_in_carries_the_current_task() -> None:
    session = make()
    (before,) = session.append(CHOICE)
    session.set_task("T-1")
    (during,) = session.append({"role": "assistant", "content": "ok"})
    (other,) = session.append({"role": "user", "content": "aside"}, task_id="T-2")
    (none,) = session.append({"role": "assistant", "content": "sure"}, task_id="")
    synced = session.sync([*session.view(), {"role": "user", "content": "on"}])
    session.set_task(None)
    (after,) = session.append({"role": "assistant", "content": "done"})
    tasks = {s.segment_id: s.task_id for s in session.segments()}
    assert [tasks[i] for i in (before, during, other, none, *synced, after)] == [
        None, "T-1", "T-2", None, "T-1", None,
    ]  # fmt: skip


@pytest.mark.parametrize("plugin", COLLECTORS)
def test_a_task_that_fills_the_window_lets_its_oldest_go(plugin: str) -> None:
    session = make(2_000, plugin=plugin, preserve_recent_turns=0, recent_messages=0)
    session.set_task("all of it")
    for number in range(30):
        session.extend(turn(number))
        session.messages()
    usage = session.usage()
    assert usage.percent_used < 80
    newest = [m.message_id for m in session.history][-5:]
    assert usage.pinned_message_ids.issuperset(newest)


def test_in_an_emergency_decisions_give_way_and_invariants_do_not() -> None:
    session = make(600, plugin="gc_truncate")
    first = {"role": "user", "content": "Go. " + words(20)}
    session.append(first)
    (law,) = session.append(
        {"role": "assistant", "content": "law " + words(60)}, tags=["invariant"]
    )
    for number in range(12):
        session.append(
            {"role": "user", "content": f"choice {number} " + words(60)}, type="decision"
        )
        session.append({"role": "assistant", "content": f"done {number}"}, type="decision")
    sent = session.messages()
    assert session.usage().total_tokens <= 600
    kept = {m.message_id for m in session.history}
    assert message_of(session, law) in kept
    assert len(sent) < 26
    assert faults(session) == []


def test_the_reason_names_the_annotation() -> None:
    session = make()
    for said in ({"type": "decision"}, {"tags": ["invariant"]}, {"task_id": "T-1"}):
        session.append({"role": "user", "content": f"note {said}"}, **said)
        session.append({"role": "assistant", "content": "ok"}, task_id="")
    session.set_task("T-1")
    reasons = session.inspect().protected.reasons()
    assert [reasons.get(m.message_id) for m in session.history] == [
        "it is a recent decision", None, "it is an invariant of the session", None,
        "it belongs to the current task", None,
    ]  # fmt: skip


def test_the_price_pass_leaves_marked_results_alone() -> None:
    plain = opened()
    drive(plain, LONG)
    left = [i for cut in plain.gc_history for item in cut.removal_list for i in item.message_ids]
    number = plain.arrivals().index(left[0])
    session = opened()

    def mark(_: int) -> None:
        if len(session.arrivals()) > number:
            session.annotate(session.arrivals()[number], tags=["invariant"])

    drive(session, LONG, each=mark)
    assert session.arrivals()[number] not in session.inspect().view.originals


def test_an_annotation_reaches_what_is_shown_and_what_that_stands_for() -> None:
    session = opened()
    drive(session, LONG)
    inside = session.inspect()
    edited = next(m for m in session.history if m.message_id in inside.view.originals)
    seen = events_of(session)
    session.annotate(edited.message_id, topic_id="by message")
    own = inside.view.originals[edited.message_id].segment_ids
    shown = inside.segmenter.segment_ids(edited.message_id)
    topics = {s.segment_id: s.topic_id for s in session.segments()}
    assert {topics[i] for i in (*own, *shown)} == {"by message"}
    session.annotate(shown[0], topic_id="by segment")
    topics = {s.segment_id: s.topic_id for s in session.segments()}
    assert (topics[shown[0]], topics[own[0]]) == ("by segment", "by segment")
    name = next(s.name for s in session.segments() if s.name)
    session.annotate(str(name), topic_id="by name")
    assert "by name" in {s.topic_id for s in session.segments()}
    assert [event.kind for event in seen] == ["annotated"] * 3
    session.recall(own[0])
    assert said_of(session, own[0])["topic_id"] == "by segment"


def test_an_annotation_moves_the_sums_of_the_usage() -> None:
    session = make()
    (segment_id,) = session.append(CHOICE)
    before = session.usage()
    session.annotate(segment_id, type="decision", policy=GCPolicy.EPHEMERAL)
    after = session.usage()
    tokens = before.by_type["message"]
    assert (before.by_type, after.by_type) == ({"message": tokens}, {"decision": tokens})
    assert after.by_policy["ephemeral"] == before.total_tokens
    assert faults(session) == []


def test_found_secrets_stay_tagged() -> None:
    session = make(secrets="mark")
    text = f"key {CANARY} here"
    (segment_id,) = session.append({"role": "user", "content": text}, tags=["mine"])
    tags = said_of(session, segment_id)["tags"]
    assert tags[0] == "mine"
    assert tags[1].startswith("secret:")
    session.annotate(segment_id, tags=[])
    assert said_of(session, segment_id)["tags"] == tags[1:]


WRONG: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"type": "rumour"}, SegmentError),
    ({"tags": "one"}, SegmentError),
    ({"tags": [7]}, SegmentError),
    ({"tags": ["ref:nobody"]}, UnknownSegmentError),
    ({"topic_id": 3}, SegmentError),
    ({"policy": "holy"}, InputError),
]


@pytest.mark.parametrize(("said", "error"), WRONG)
def test_what_cannot_be_said_changes_nothing(said: dict[str, Any], error: type[Exception]) -> None:
    session = filled(2)
    before = state_of(session)
    with pytest.raises(error):
        session.append({"role": "user", "content": "no"}, **said)
    with pytest.raises(error):
        session.annotate(session.history[0].message_id, **said)
    assert state_of(session) == before


def test_an_unknown_name_cannot_be_annotated() -> None:
    with pytest.raises(UnknownHandleError):
        filled(1).annotate("nobody", topic_id="t")


def test_an_annotation_that_cannot_be_stored_is_taken_back() -> None:
    store = Flaky()
    session = filled(2, store=store)
    session.flush()
    before, message_id = state_of(session), session.history[1].message_id
    store.fail_next()
    with pytest.raises(StoreError):
        session.annotate(message_id, **SAID)
    assert state_of(session) == before
    session.annotate(message_id, **SAID)
    assert faults(session) == []


def test_several_messages_can_be_annotated_as_they_come_in() -> None:
    session = make()
    ids = session.extend(turn(0), task_id="T-1", tags=["batch"])
    assert {(said_of(session, i)["task_id"], said_of(session, i)["tags"]) for i in ids} == {
        ("T-1", ("batch",))
    }
