"""The power goes off: what was acknowledged is there, and batches are whole."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ctxgc import files
from ctxgc.stores import json_store, open_store
from ctxgc.stores.sqlite_file import SqliteFile
from tests.crash.disk import Recorder, after_power_cut, recording_disk
from tests.crash.workload import SESSION, batch, check

COMMITS = 14


def _record_json(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return all that a writer did to its files, with its acknowledgements."""
    folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(json_store, "SMALLEST_FOLD", 1 << 13)
        recorder = Recorder(folder, patch)
        store = open_store(f"json:{folder}/stash.json")
        for number in range(1, COMMITS + 1):
            store.commit(SESSION, batch(number))
            recorder.note("acknowledged", number)
        store.close()
    return recorder.events


def _record_sqlite(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return all that SQLite did to its files, with the acknowledgements."""
    apsw = pytest.importorskip("apsw", reason="the power cut in SQLite needs the package apsw")
    folder.mkdir()
    disk = recording_disk(apsw)

    def connect(self: SqliteFile) -> Any:
        db = apsw.Connection(str(self.path), vfs=disk.name)
        self._set_up(db)
        return db

    with monkeypatch.context() as patch:
        patch.setattr(SqliteFile, "_connect", connect)
        store = open_store(f"sqlite:{folder}/stash.db")
        for number in range(1, COMMITS + 1):
            store.commit(SESSION, batch(number))
            disk.events.append(("acknowledged", number))
            if number % 5 == 0:
                store.close()  # folds the log into the database
    return list(disk.events)


def _cut(kind: str, events: list[Any], folder: Path, cuts: int) -> None:
    """Let the power go off at random moments, and look at what is left."""
    random = Random(4)
    for number in range(cuts):
        moment = random.randint(0, len(events))
        place = folder / str(number)
        place.mkdir()
        for name, data in after_power_cut(events[:moment], random).items():
            (place / name).write_bytes(data)
        said = [event[1] for event in events[:moment] if event[0] == "acknowledged"]
        check(f"{kind}:{place}/stash.{'json' if kind == 'json' else 'db'}", max(said, default=0))
    print(f"{kind}: {cuts} power cuts in {len(events)} steps, 0 commits lost")


def test_json_survives_power_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = _record_json(tmp_path / "recorded", monkeypatch)
    assert sum(event[0] == "move" for event in events) > 3
    _cut("json", events, tmp_path, 80)


def test_sqlite_survives_power_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = _record_sqlite(tmp_path / "recorded", monkeypatch)
    assert sum(event[0] == "remove" for event in events) > 1
    _cut("sqlite", events, tmp_path, 60)


@pytest.mark.deep
def test_both_survive_many_power_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, record in (("json", _record_json), ("sqlite", _record_sqlite)):
        (tmp_path / kind).mkdir()
        _cut(kind, record(tmp_path / f"{kind}-recorded", monkeypatch), tmp_path / kind, 10_000)


def _append_without_sync(path: Path, data: bytes, size: int) -> None:
    file = os.open(path, os.O_WRONLY)
    os.pwrite(file, data, size)
    os.close(file)


@pytest.mark.parametrize(
    ("module", "name", "forgetful"),
    [
        (json_store, "append_durable", _append_without_sync),
        (files, "sync_directory", lambda _: None),
    ],
)
def test_a_forgotten_sync_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, forgetful: Any
) -> None:
    monkeypatch.setattr(module, name, forgetful)
    events = _record_json(tmp_path / "recorded", monkeypatch)
    with pytest.raises(AssertionError):
        _cut("json", events, tmp_path, 150)
