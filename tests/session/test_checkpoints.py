"""A checkpoint gives the view back, byte for byte, whatever happened since."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxgc import GCConfig, Session
from ctxgc.core import Format
from ctxgc.errors import CheckpointError, PlanError
from ctxgc.guard import FileDifference, checksum_files
from ctxgc.stores import Put, open_store
from ctxgc.testing import make_session
from tests.session.random_walk import faults

FORMATS: tuple[Format, ...] = ("openai", "responses", "anthropic")
LIMIT = 20_000
CONFIG = GCConfig(recent_messages=2, recent_user_messages=1, preserve_recent_turns=1)


def started(format_: Format = "openai", **options: Any) -> tuple[Session, list[dict[str, Any]]]:
    """Return a session with the first half of a story, and the second half."""
    story = make_session(3, 40, format_).messages
    given: dict[str, Any] = {"store": "memory:", "config": CONFIG, "plugin": "gc_mark_sweep"}
    session = Session(LIMIT, **{**given, **options})
    session.extend(story[: len(story) // 2], format=format_)
    return session, story[len(story) // 2 :]


def shown(session: Session) -> bytes:
    """Return the view as bytes."""
    return json.dumps(session.view()).encode()


def test_an_undo_after_a_restore_brings_back_nothing_that_came_in_after_the_checkpoint(
    tmp_path: Path,
) -> None:
    store = f"json:{tmp_path / 'stash.json'}"
    session, rest = started(store=store, session_id="s")
    before = shown(session)
    checkpoint = session.checkpoint("here")
    session.extend(rest, format="openai")
    session.collect(1_000)
    session.restore(checkpoint.checkpoint_id)
    session.close()
    again = Session(LIMIT, store=store, session_id="s", config=CONFIG, plugin="gc_mark_sweep")
    again.undo()
    assert shown(again) == before


@pytest.mark.parametrize("format_", FORMATS)
def test_restore_gives_the_view_back_after_messages_and_collections(format_: Format) -> None:
    session, rest = started(format_)
    session.collect(2_000)
    before = shown(session)
    checkpoint = session.checkpoint("here")
    session.extend(rest, format=format_)
    session.collect(1_000)
    session.collect(0)
    assert shown(session) != before
    restored = session.restore(checkpoint.checkpoint_id)
    assert (restored.checkpoint, restored.differences) == (checkpoint, ())
    assert shown(session) == before
    assert faults(session) == []


@pytest.mark.parametrize("format_", FORMATS)
def test_what_came_in_since_is_stashed_and_can_be_read(format_: Format) -> None:
    session, rest = started(format_)
    checkpoint = session.checkpoint()
    known = {segment.segment_id for segment in session.segments()}
    session.extend(rest, format=format_)
    since = {s.segment_id: s.text for s in session.segments() if s.segment_id not in known}
    session.restore(checkpoint.checkpoint_id)
    assert {s.segment_id: s.text for s in session.segments() if s.tier == "stashed"} == since
    assert {name: session.read(name) for name in since} == since


@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_restore_works_after_a_restart(kind: str, tmp_path: Path) -> None:
    store = f"{kind}:{tmp_path / 'stash'}"
    session, rest = started(store=store, session_id="s")
    session.collect(2_000)
    pinned = session.history[3].message_id
    session.pin(pinned)
    before = shown(session)
    name = session.checkpoint("here").checkpoint_id
    session.unpin(pinned)
    session.extend(rest, format="openai")
    session.collect(0)
    session.close()
    again = Session(LIMIT, store=store, session_id="s", config=CONFIG)
    assert [info.checkpoint_id for info in again.checkpoints()] == [name]
    again.restore(name)
    assert shown(again) == before
    assert pinned in again.usage().pinned_message_ids
    again.close()
    third = Session(LIMIT, store=store, session_id="s", config=CONFIG)
    assert shown(third) == before
    assert pinned in third.usage().pinned_message_ids
    assert faults(third) == []
    third.close()


def test_a_checkpoint_of_what_was_restored_shows_the_same() -> None:
    session, rest = started()
    session.collect(2_000)
    first = session.checkpoint("one")
    session.extend(rest, format="openai")
    session.restore(first.checkpoint_id)
    second = session.checkpoint("two")
    assert second.conversation_history == first.conversation_history
    snapshots = [dict(each.context_snapshot) for each in (first, second)]
    assert snapshots[0]["places"] == snapshots[1]["places"]
    assert snapshots[0]["pinned_segments"] == snapshots[1]["pinned_segments"]


def test_messages_that_came_as_bytes_come_back_as_these_bytes() -> None:
    session = Session(LIMIT, store="memory:")
    session.append(b'{"role":"user",  "content":"caf\\u00e9"}')
    checkpoint = session.checkpoint()
    session.append(b'{"content":"yes" ,"role":"assistant"}')
    session.restore(checkpoint.checkpoint_id)
    assert session.messages_json() == b'[{"role":"user",  "content":"caf\\u00e9"}]'


def test_pins_are_what_they_were() -> None:
    session, _ = started()
    early, late = (session.history[place].message_id for place in (2, 4))
    session.pin(early)
    checkpoint = session.checkpoint()
    session.unpin(early)
    session.pin(late)
    session.restore(checkpoint.checkpoint_id)
    assert session.usage().pinned_message_ids == frozenset({early})


def test_a_damaged_checkpoint_is_refused_and_nothing_changes() -> None:
    store = open_store("memory:")
    session, rest = started(store=store, session_id="s")
    checkpoint = session.checkpoint()
    doc = store.get("s", "checkpoints", checkpoint.checkpoint_id) or {}
    bad = {**doc, "metrics": {**doc["metrics"], "total_tokens": 1}}
    session.extend(rest, format="openai")
    session.flush()
    store.commit("s", [Put("checkpoints", checkpoint.checkpoint_id, bad)])
    before = shown(session)
    with pytest.raises(CheckpointError, match="digest does not match"):
        session.restore(checkpoint.checkpoint_id)
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        session.restore("20260101T000000000000Z-00000000")
    assert shown(session) == before


def test_files_that_differ_are_reported(tmp_path: Path) -> None:
    same, changed, gone = (tmp_path / name for name in ("same.py", "changed.py", "gone.py"))
    for file in (same, changed, gone):
        file.write_text("old")
    session, _ = started()
    names = [str(same), str(changed), str(gone)]
    checkpoint = session.checkpoint(files=names)
    assert checkpoint.file_checksums == checksum_files(names)
    changed.write_text("new")
    gone.unlink()
    expected = checksum_files([same])[str(same)]
    found = checksum_files([changed])[str(changed)]
    assert session.restore(checkpoint.checkpoint_id).differences == (
        FileDifference(path=str(changed), kind="changed", expected=expected, found=found),
        FileDifference(path=str(gone), kind="missing", expected=expected, found=""),
    )


def test_the_files_worked_on_last_are_checked_unless_others_are_named(tmp_path: Path) -> None:
    file = tmp_path / "work.py"
    file.write_text("x = 1")
    session, _ = started()
    session.set_active_file(str(file))
    session.set_active_file(str(tmp_path / "never_there.py"))
    assert session.checkpoint().file_checksums == checksum_files([str(file)])


def test_a_checkpoint_holds_what_s4_lists() -> None:
    session, _ = started()
    made = session.checkpoint(
        "a label", task_queue=["next"], system_state={"branch": "main"}, triggers=["by hand"]
    )
    assert (made.label, made.task_queue, made.system_state, made.triggers) == (
        "a label",
        ["next"],
        {"branch": "main"},
        ["by hand"],
    )
    assert made.metrics == session.usage().to_dict()
    assert len(made.conversation_history) == len(session.history)
    assert made.context_snapshot["state"]["context_limit"] == LIMIT


def test_old_checkpoints_go_and_labelled_ones_stay() -> None:
    session, _ = started()
    labelled = session.checkpoint("keep me").checkpoint_id
    plain = [session.checkpoint().checkpoint_id for _ in range(14)]
    assert [info.checkpoint_id for info in session.checkpoints()] == [labelled, *plain[-10:]]


def test_a_deleted_text_leaves_with_the_checkpoints_that_show_it() -> None:
    session, _ = started()
    early = session.checkpoint("before it came").checkpoint_id
    (secret,) = session.append({"role": "user", "content": "forget me for good"})
    session.checkpoint("shows it")
    session.delete([secret], confirm=True)
    assert [info.checkpoint_id for info in session.checkpoints()] == [early]


def test_undo_and_restore_do_not_stand_in_each_others_way() -> None:
    session, _ = started()
    before = shown(session)
    checkpoint = session.checkpoint()
    session.collect(1_000)
    session.undo()
    assert shown(session) == before
    session.collect(1_000)
    session.restore(checkpoint.checkpoint_id)
    assert shown(session) == before
    session.undo()
    assert shown(session) == before
    with pytest.raises(PlanError, match="no collection to undo"):
        session.undo()
    assert faults(session) == []


def test_what_comes_in_after_a_rewind_a_restart_and_a_restore_stays_at_the_end(
    tmp_path: Path,
) -> None:
    kept: dict[str, Any] = {"store": f"json:{tmp_path / 'stash.json'}", "session_id": "x"}
    said = [{"role": r, "content": f"{r} {n}"} for n in range(4) for r in ("user", "assistant")]
    new = [{"role": "user", "content": "new"}, {"role": "assistant", "content": "answer"}]
    with Session(100_000, **kept) as session:
        session.extend(said)
        checkpoint = session.checkpoint(files=[])
        session.sync(said[:2])
    with Session(100_000, **kept) as session:
        session.restore(checkpoint.checkpoint_id)
        session.extend(new)
    with Session(100_000, **kept) as session:
        assert session.messages() == [*said, *new]


def test_what_a_restore_brought_back_leaves_with_a_rewind_to_before_it() -> None:
    call = {"id": "c0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c0", "content": "r0"},
        {"role": "assistant", "content": "ok"},
    ]
    other = [said[0], {"role": "user", "content": "other"}]
    session = Session(100_000, store="memory:")
    session.extend(said)
    checkpoint = session.checkpoint(files=[])
    session.sync(said[:2])
    session.restore(checkpoint.checkpoint_id)
    session.sync(other)
    assert session.messages() == other
    assert faults(session) == []
