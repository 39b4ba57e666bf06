"""CheckpointStore: the last good checkpoint is always there, whatever happened to the others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ctxgc.errors import CheckpointError
from ctxgc.guard import Checkpoint, CheckpointStore, RetentionPolicy
from ctxgc.stores import Drop, Put, Store, open_store

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["memory:", "json:{}/shelf.json", "sqlite:{}/shelf.db"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    opened = open_store(request.param.format(tmp_path))
    yield opened
    opened.close()


def made(number: int, **fields: Any) -> Checkpoint:
    moment = START + timedelta(minutes=number)
    return Checkpoint(timestamp=moment, context_snapshot={"number": number}, **fields)


def test_a_checkpoint_comes_back_as_it_was(store: Store) -> None:
    shelf = CheckpointStore(store, "s")
    original = made(1, conversation_history=[{"role": "user", "content": "lone \ud800 and \x00"}])
    assert shelf.add(original) == ()
    assert shelf.get(original.checkpoint_id) == original
    assert shelf.latest_good().checkpoint == original


def test_the_list_names_them_oldest_first(store: Store) -> None:
    shelf = CheckpointStore(store, "s")
    second, first = made(2, label="b", triggers=["time_interval"]), made(1)
    for checkpoint in (second, first):
        shelf.add(checkpoint)
    infos = shelf.list()
    assert [info.checkpoint_id for info in infos] == [first.checkpoint_id, second.checkpoint_id]
    assert (infos[1].label, infos[1].timestamp, infos[1].triggers) == (
        "b",
        second.timestamp,
        ("time_interval",),
    )
    assert infos[0].size > 0


def test_the_retention_policy_lets_the_older_ones_go_with_the_same_commit(store: Store) -> None:
    shelf = CheckpointStore(store, "s", RetentionPolicy(newest=2, days=0))
    held = [made(n) for n in range(3)]
    gone = [shelf.add(checkpoint) for checkpoint in held]
    assert gone == [(), (), (held[0].checkpoint_id,)]
    assert store.revision("s") == 3
    assert [info.checkpoint_id for info in shelf.list()] == [c.checkpoint_id for c in held[1:]]


def test_a_session_can_commit_the_writes_with_its_own(store: Store) -> None:
    shelf = CheckpointStore(store, "s", RetentionPolicy(newest=1, days=0))
    first, second = made(1), made(2)
    shelf.add(first)
    writes = shelf.writes(second)
    assert writes == (
        Put("checkpoints", second.checkpoint_id, second.to_dict()),
        Drop("checkpoints", first.checkpoint_id),
    )
    assert [info.checkpoint_id for info in shelf.list()] == [first.checkpoint_id]


def test_sessions_do_not_see_each_others_checkpoints(store: Store) -> None:
    CheckpointStore(store, "a").add(made(1))
    other = CheckpointStore(store, "b")
    assert (other.list(), other.latest_good().checkpoint) == ((), None)


def test_damaged_ones_are_passed_over_and_reported(store: Store) -> None:
    shelf = CheckpointStore(store, "s")
    good, forged, strange = made(1), made(2), made(3)
    shelf.add(good)
    misplaced = made(4)
    store.commit("s", [
        Put("checkpoints", forged.checkpoint_id, {**forged.to_dict(), "label": "forged"}),
        Put("checkpoints", strange.checkpoint_id, {"what": "is this"}),
        Put("checkpoints", misplaced.checkpoint_id, good.to_dict()),
    ])  # fmt: skip
    latest = shelf.latest_good()
    assert latest.checkpoint == good
    assert [damaged.checkpoint_id for damaged in latest.damaged] == [
        misplaced.checkpoint_id,
        strange.checkpoint_id,
        forged.checkpoint_id,
    ]
    assert all("damaged" in damaged.reason for damaged in latest.damaged)
    with pytest.raises(CheckpointError, match="damaged"):
        shelf.get(forged.checkpoint_id)


def test_no_checkpoint_is_put_over_another_and_the_same_again_changes_nothing(store: Store) -> None:
    shelf = CheckpointStore(store, "s")
    first = made(1)
    shelf.add(first)
    shelf.add(first)
    forged = made(1, checkpoint_id=first.checkpoint_id, label="another")
    with pytest.raises(CheckpointError, match="never written over"):
        shelf.add(forged)
    assert shelf.get(first.checkpoint_id) == first


def test_a_changed_checkpoint_is_not_taken(store: Store) -> None:
    shelf = CheckpointStore(store, "s")
    changed = made(1)
    changed.context_snapshot["number"] = 2
    with pytest.raises(CheckpointError, match="digest"):
        shelf.add(changed)
    assert shelf.list() == ()


def test_an_unknown_id_is_a_typed_error(store: Store) -> None:
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        CheckpointStore(store, "s").get("nothing")
