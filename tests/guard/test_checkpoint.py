"""Checkpoint: what goes in comes out, and any changed bit is noticed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import CheckpointError, InputError, StoreError
from ctxgc.guard import Checkpoint
from ctxgc.guard.checkpoint import canonical, digest_of, pack, unpack
from tests.requirements import requirement

NOW = datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)

MESSAGES = [{"role": "user", "content": f"line {n} \ud83d \x00 é"} for n in range(3)]


def checkpoint(**changes: Any) -> Checkpoint:
    fields: dict[str, Any] = {
        "timestamp": NOW,
        "label": "before the merge",
        "context_snapshot": {"view": [1, 2.5, None, "text"]},
        "system_state": {"phase": "build"},
        "task_queue": [{"id": "t1"}, {"id": "t2"}],
        "metrics": {"tokens": 1e2},
        "conversation_history": MESSAGES,
        "file_checksums": {"a.py": "0" * 64},
        "triggers": ["phase_transition"],
    }
    return Checkpoint(**{**fields, **changes})


def flips(data: bytes) -> list[bytes]:
    """Every way to change one bit."""
    return [
        data[:place] + bytes([data[place] ^ (1 << bit)]) + data[place + 1 :]
        for place in range(len(data))
        for bit in range(8)
    ]


# -- contents ---------------------------------------------------------------------------------------


@requirement(
    "S4.checkpoint.timestamp", "S4.checkpoint.context-snapshot", "S4.checkpoint.system-state",
    "S4.checkpoint.task-queue", "S4.checkpoint.metrics",
)  # fmt: skip
def test_a_checkpoint_carries_everything_through_its_dictionary() -> None:
    original = checkpoint()
    data = json.loads(json.dumps(original.to_dict()))
    again = Checkpoint.from_dict(data)
    assert again == original
    assert again.timestamp == NOW
    assert again.context_snapshot == {"view": [1, 2.5, None, "text"]}
    assert again.system_state == {"phase": "build"}
    assert again.task_queue == [{"id": "t1"}, {"id": "t2"}]
    assert again.metrics == {"tokens": 100.0}


@requirement("S4.checkpoint.conversation-history")
def test_the_conversation_is_compressed_in_the_dictionary_and_whole_in_the_object() -> None:
    long = [{"role": "user", "content": "the same again " * 50} for _ in range(100)]
    original = checkpoint(conversation_history=long)
    assert original.conversation_history == long
    packed = original.to_dict()["conversation_history"]
    assert len(packed["data"]) < len(json.dumps(long)) / 20
    assert unpack("conversation_history", packed) == long


def test_a_checkpoint_is_a_copy_that_later_changes_do_not_reach() -> None:
    state = {"open": ["a"]}
    made = checkpoint(system_state=state)
    state["open"].append("b")
    assert made.system_state == {"open": ["a"]}
    made.verify()


def test_a_value_changed_in_memory_is_noticed() -> None:
    made = checkpoint()
    made.context_snapshot["view"].append("forged")
    with pytest.raises(CheckpointError, match="digest does not match"):
        made.verify()


def test_times_are_kept_in_utc() -> None:
    east = timezone(timedelta(hours=9))
    assert checkpoint(timestamp=NOW.astimezone(east)).timestamp == NOW
    assert checkpoint(timestamp=NOW.astimezone(east)).timestamp.tzinfo is UTC


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("context_snapshot", {"x": object()}),
        ("metrics", {"x": float("nan")}),
        ("task_queue", {"not": "a list"}),
        ("timestamp", datetime(2026, 1, 1)),  # noqa: DTZ001 - without a zone on purpose
        ("checkpoint_id", "../escape"),
        ("label", 5),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InputError, match=field):
        checkpoint(**{field: value})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)  # fmt: skip


@given(JSON, st.lists(JSON, max_size=3))
def test_any_json_value_comes_back_as_it_was(state: Any, history: list[Any]) -> None:
    made = checkpoint(context_snapshot={"state": state}, conversation_history=history)
    again = Checkpoint.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again == made
    assert again.to_dict() == made.to_dict()


# -- files ------------------------------------------------------------------------------------------


@requirement("S4.checkpoint.save", "S4.checkpoint.load")
def test_a_saved_checkpoint_is_loaded_by_its_time_or_its_id(tmp_path: Path) -> None:
    made = checkpoint()
    file = made.save(str(tmp_path))
    assert json.loads(file.read_bytes())["system_state"] == {"phase": "build"}
    assert Checkpoint.load(str(tmp_path), made.timestamp.isoformat()) == made
    assert Checkpoint.load(tmp_path, made.timestamp) == made
    assert Checkpoint.load(tmp_path, made.checkpoint_id) == made


def test_file_names_are_safe_everywhere_and_never_made_from_text(tmp_path: Path) -> None:
    """S4's ISO timestamps had colons."""
    file = checkpoint(label="../../etc/passwd: <x>").save(tmp_path)
    assert re.fullmatch(r"checkpoint_20260304T050607000089Z-[0-9a-f]{8}\.json", file.name)
    assert file.parent == tmp_path
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("wanted", ["../secret", "*", "", "checkpoint", "2026-03-04T05:06:07"])
def test_what_is_neither_time_nor_id_never_becomes_a_path(tmp_path: Path, wanted: str) -> None:
    (tmp_path / "secret.json").write_text("{}")
    checkpoint().save(tmp_path / "shelf")
    with pytest.raises(InputError, match="timestamp"):
        Checkpoint.load(tmp_path / "shelf", wanted)


def test_no_checkpoint_is_ever_written_over_another(tmp_path: Path) -> None:
    first = checkpoint()
    file = first.save(tmp_path)
    assert first.save(tmp_path) == file
    forged = checkpoint(checkpoint_id=first.checkpoint_id, label="another")
    with pytest.raises(CheckpointError, match="never written over"):
        forged.save(tmp_path)
    second = checkpoint()
    second.save(tmp_path)
    assert Checkpoint.load(tmp_path, first.checkpoint_id) == first
    with pytest.raises(CheckpointError, match="holds 2 checkpoints") as caught:
        Checkpoint.load(tmp_path, NOW)
    assert len(caught.value.details["files"]) == 2


def test_a_missing_checkpoint_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no checkpoints"):
        Checkpoint.load(tmp_path, NOW)


def test_a_failed_save_leaves_the_last_good_one_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = checkpoint()
    good.save(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())

    def full(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreError, match="No space left"):
        checkpoint().save(tmp_path)
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert Checkpoint.load(tmp_path, good.checkpoint_id) == good
    checkpoint().save(tmp_path)


def unnoticed(made: Checkpoint, folder: Path, changes: Iterable[bytes]) -> list[bytes]:
    """Return those bytes that load although they are not the file's own.

    The bytes are handed to the reader in place of the file's: writing them would take minutes.
    """
    made.save(folder)
    passed = []
    with pytest.MonkeyPatch.context() as patch:
        for changed in changes:
            patch.setattr(Path, "read_bytes", lambda _, data=changed: data)
            try:
                Checkpoint.load(folder, made.checkpoint_id)
            except CheckpointError:
                continue
            passed.append(changed)
    return passed


def varied(number: int) -> Checkpoint:
    return checkpoint(
        label="é" * number,
        timestamp=NOW + timedelta(seconds=number),
        conversation_history=MESSAGES * number,
        metrics={"tokens": number * 1e21, "more": [-0.0, 1e-7]},
    )


FILES = [*range(5), *(pytest.param(n, marks=pytest.mark.deep) for n in range(5, 200))]


@pytest.mark.parametrize("number", FILES)
def test_every_flipped_bit_and_every_truncation_of_a_file_is_noticed(
    tmp_path: Path, number: int
) -> None:
    made = varied(number)
    data = made.save(tmp_path).read_bytes()
    truncations = [data[:length] for length in range(len(data))]
    assert unnoticed(made, tmp_path, [*flips(data), *truncations]) == []
    assert unnoticed(made, tmp_path, [data]) == [data]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"  ", b"\t", 1),
        lambda data: data + b"\n",
        lambda data: data.replace(b"\\u00e9", b"\\u00E9"),
        lambda data: data.replace(b"100.0", b"1e2"),
        lambda data: b"[" * 100_000,
        lambda data: b"[]",
        lambda data: b"\xff" + data,
    ],
)
def test_bytes_that_say_the_same_otherwise_are_noticed_too(tmp_path: Path, change: Any) -> None:
    made = checkpoint(label="é")
    file = made.save(tmp_path)
    data = file.read_bytes()
    file.write_bytes(change(data))
    assert file.read_bytes() != data
    with pytest.raises(CheckpointError, match="damaged"):
        Checkpoint.load(tmp_path, made.checkpoint_id)


def test_a_file_under_another_name_is_noticed(tmp_path: Path) -> None:
    made, other = checkpoint(), checkpoint()
    made.save(tmp_path).rename(tmp_path / f"checkpoint_{other.checkpoint_id}.json")
    with pytest.raises(CheckpointError, match=made.checkpoint_id):
        Checkpoint.load(tmp_path, other.checkpoint_id)


# -- damaged and foreign data -----------------------------------------------------------------------


def test_a_newer_version_is_refused_politely_and_left_alone() -> None:
    data = {**checkpoint().to_dict(), "version": 2, "field_of_the_future": 1}
    with pytest.raises(CheckpointError, match="version 2, this ctxgc reads up to 1") as caught:
        Checkpoint.from_dict(data)
    assert caught.value.details == {"version": 2}


@pytest.mark.parametrize(
    "change",
    [
        {"version": None},
        {"version": True},
        {"digest": ""},
        {"checkpoint_id": "x"},
        {"label": "forged"},
        {"label": 7},
        {"unknown": 1},
        {"conversation_history": []},
        {"timestamp": "yesterday"},
        {"timestamp": "2026-03-04T05:06:07"},
        {"conversation_history": {**pack([]), "codec": "rot13"}},
        {"conversation_history": {**pack([]), "data": 5}},
        {"conversation_history": {**pack([]), "digest": "0"}},
        {"conversation_history": pack([])},
    ],
)
def test_a_dictionary_that_was_tampered_with_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError):
        Checkpoint.from_dict({**checkpoint().to_dict(), **change})


def test_a_packed_text_with_a_right_digest_but_no_content_is_refused() -> None:
    for data in ("", "!!!!", "AAAA"):
        forged = {**pack([]), "data": data, "digest": digest_of(data.encode())}
        with pytest.raises(CheckpointError, match="history"):
            unpack("history", forged)


@given(JSON)
def test_one_value_has_one_canonical_text(value: Any) -> None:
    shuffled = json.loads(json.dumps(value))
    assert canonical(shuffled) == canonical(value)
    assert json.loads(canonical(value)) == value


@dataclass
class ProjectState:
    branch: str
    since: datetime


def test_states_tasks_and_metrics_may_be_objects_with_fields() -> None:
    state = ProjectState("main", datetime(2026, 1, 1, tzinfo=UTC))
    given: dict[str, Any] = {"system_state": state, "task_queue": [state]}
    made = Checkpoint(context_snapshot={}, **given)
    plain = {"branch": "main", "since": "2026-01-01T00:00:00Z"}
    assert (made.system_state, made.task_queue) == (plain, [plain])
    assert Checkpoint.from_dict(made.to_dict()) == made
