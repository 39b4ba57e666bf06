"""The readable file: its form, its journal, other programs' files, and damage."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxgc.errors import StoreBusyError, StoreError, StoreVersionError
from ctxgc.files import FileLock
from ctxgc.stores import Drop, Put, json_store, open_store
from ctxgc.stores.json_store import JsonStore
from ctxgc.stores.tables import Tables
from tests.requirements import requirement
from tests.stores.places import segment


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stash.json"


def _filled(path: Path, count: int = 3) -> JsonStore:
    store = JsonStore(path)
    puts = [Put("segments", f"k{n}", segment(f"text {n}", f"k{n}")) for n in range(count)]
    store.commit("a", [*puts, Put("state", "s", {"n": 1})])
    return store


@requirement("S0.storage.stash-json", "S0.storage.structure")
def test_a_closed_store_is_one_readable_file_with_whole_segments(path: Path) -> None:
    _filled(path, 2).close()
    saved = json.loads(path.read_text(encoding="utf-8"))
    digests = [each.pop("~crc") for each in saved["segments"]]
    assert saved["segments"] == [
        {"session_id": "a", **segment(f"text {n}", f"k{n}")} for n in range(2)
    ]
    assert len(set(digests)) == 2
    assert saved["version"] == 2
    assert saved["sessions"]["a"]["state"]["s"].keys() == {"n", "~crc"}
    assert _names(path.parent) == ["stash.json", "stash.json.lock"]


@requirement("S0.storage.path-default")
def test_the_path_of_the_seed_works_when_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("json:artifacts/context_stash.json")
    store.commit("a", [Put("segments", "k", segment("x", "k"))])
    store.close()
    assert (tmp_path / "artifacts" / "context_stash.json").is_file()
    assert stat.S_IMODE((tmp_path / "artifacts").stat().st_mode) == 0o700


def test_all_files_are_private(path: Path) -> None:
    _filled(path)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    names = ["stash.json", "stash.json.journal", "stash.json.lock"]
    assert modes == dict.fromkeys(names, 0o600)


@requirement("S0.storage.path-configurable")
def test_the_path_can_be_chosen(tmp_path: Path) -> None:
    store = open_store(f"json:{tmp_path}/elsewhere/mine.json")
    store.commit("a", [Put("segments", "k", segment("x", "k"))])
    store.close()
    assert _names(tmp_path / "elsewhere") == ["mine.json", "mine.json.lock"]


@requirement("S0.storage.no-sql-needed")
def test_the_default_store_loads_no_database(tmp_path: Path) -> None:
    program = (
        "import sys; from ctxgc.stores import Put, open_store\n"
        "store = open_store(); store.commit('a', [Put('segments', 'k', {'text': 'red fox'})])\n"
        "assert store.search('fox')[0].key == 'k'; store.close()\n"
        "print([name for name in ('sqlite3', 'psycopg', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, capture_output=True, check=True, encoding="utf-8",
    )  # fmt: skip
    assert done.stdout == "[]\n"


def test_a_plain_file_of_the_seed_opens(path: Path) -> None:
    plain = [segment("first", "one"), {"text": "no id", "type": "note"}]
    path.write_text(json.dumps({"segments": plain}, indent=2), encoding="utf-8")
    store = JsonStore(path)
    assert store.load("default", "segments") == [("one", plain[0]), ("segment-2", plain[1])]
    assert [hit.key for hit in store.search("first")] == ["one"]
    store.commit("default", [Put("segments", "two", segment("second", "two"))])
    store.close()
    again = JsonStore(path)
    assert [key for key, _ in again.load("default", "segments")] == ["one", "segment-2", "two"]
    assert again.reports == ()


@pytest.mark.parametrize(
    "doc",
    [
        {},
        {"doc": {"a": 1}},
        {"session_id": "x", "key": "y"},
        {"segment_id": "other"},
        {"key": None, "text": '"session_id"'},
    ],
)
def test_documents_that_look_like_the_file_itself_come_back_the_same(
    path: Path, doc: dict[str, Any]
) -> None:
    store = JsonStore(path)
    store.commit("a", [Put("segments", "k", doc), Put("state", "k", doc)])
    store.close()
    again = JsonStore(path)
    assert (again.get("a", "segments", "k"), again.get("a", "state", "k")) == (doc, doc)


def test_a_small_commit_appends_and_does_not_rewrite_the_file(path: Path) -> None:
    store = _filled(path, 500)
    before = path.stat()
    for number in range(20):
        store.commit("a", [Put("segments", "k0", segment(f"new {number}", "k0"))])
    assert path.stat() == before
    store.close()
    assert path.stat().st_ino != before.st_ino
    assert JsonStore(path).get("a", "segments", "k0") == segment("new 19", "k0")


def test_a_journal_that_outgrows_the_file_is_folded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_store, "SMALLEST_FOLD", 1_000)
    store, folds = JsonStore(path), set()
    for number in range(200):
        store.commit("a", [Put("segments", f"k{number}", segment("x" * 50, f"k{number}"))])
        folds.add(json.loads(path.read_bytes())["generation"])
    assert 3 < len(folds) < 20
    assert len(JsonStore(path).load("a", "segments")) == 200


def test_a_batch_of_a_hundred_is_one_durable_write(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = _filled(path)
    syncs: list[int] = []
    monkeypatch.setattr(os, "fsync", syncs.append)
    store.commit("a", [Put("segments", f"n{n}", segment("x", f"n{n}")) for n in range(100)])
    assert len(syncs) == 1


def test_a_journal_that_was_folded_before_a_crash_is_not_read_twice(path: Path) -> None:
    store = _filled(path)
    store.commit("a", [Drop("segments", "k0")])
    journal = path.with_name("stash.json.journal")
    old = journal.read_bytes()
    store.close()
    journal.write_bytes(old)
    again = JsonStore(path)
    assert (again.revision("a"), [key for key, _ in again.load("a", "segments")]) == (
        2,
        ["k1", "k2"],
    )
    assert again.commit("a", [Drop("segments", "k1")]) == 3
    assert JsonStore(path).revision("a") == 3


def test_a_torn_commit_is_cut_off_and_reported(path: Path) -> None:
    _filled(path)
    journal = path.with_name("stash.json.journal")
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'00000000 {"session": "a", "wri')
    store = JsonStore(path)
    assert [report.kind for report in store.reports] == ["torn"]
    assert store.commit("a", [Put("state", "t", {})]) == 2
    assert journal.read_bytes().startswith(whole)
    assert JsonStore(path).reports == ()


def test_another_process_that_holds_the_lock_is_a_typed_timeout(path: Path) -> None:
    store = JsonStore(path, timeout=0.01)
    with FileLock(path.with_name("stash.json.lock"), 0), pytest.raises(StoreBusyError):
        store.commit("a", [Put("state", "s", {})])
    assert store.commit("a", [Put("state", "s", {})]) == 1


@pytest.mark.parametrize(
    "content", ['{"version": 3, "segments": [], "new": {}}', '{"version": "x"}']
)
def test_a_file_of_a_newer_version_is_refused_and_left_alone(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")
    with pytest.raises(StoreVersionError) as error:
        JsonStore(path)
    assert "newer ctxgc" in error.value.hint
    assert path.read_text(encoding="utf-8") == content


def test_a_damaged_line_costs_one_document_and_the_file_is_kept(path: Path) -> None:
    _filled(path, 5).close()
    damaged = path.read_bytes().replace(b'"text":"text 2"', b'"text":"text 2', 1)
    path.write_bytes(damaged)
    store = JsonStore(path)
    assert [key for key, _ in store.load("a", "segments")] == ["k0", "k1", "k3", "k4"]
    assert (store.get("a", "state", "s"), store.revision("a")) == ({"n": 1}, 1)
    (report,) = store.reports
    assert (report.kind, report.saved, report.lost) == ("damaged", 5, 1)
    assert Path(str(report.set_aside)).read_bytes() == damaged
    assert JsonStore(path).reports == ()
    assert "stash.json.damaged-1" in _names(path.parent)


def test_a_damaged_commit_in_the_journal_is_left_out_and_the_journal_kept(path: Path) -> None:
    store = _filled(path)
    for name in ("x", "y"):
        store.commit("a", [Put("state", name, {"name": name})])
    journal = path.with_name("stash.json.journal")
    journal.write_bytes(journal.read_bytes().replace(b'"name":"x"', b'"name":"X"'))
    again = JsonStore(path)
    assert [key for key, _ in again.load("a", "state")] == ["s", "y"]
    assert [(report.kind, report.lost) for report in again.reports] == [("damaged", 1)]
    assert "stash.json.journal.damaged-1" in _names(path.parent)


def test_a_file_cut_at_any_length_never_hides_what_was_lost(path: Path) -> None:
    _filled(path, 3).close()
    whole = path.read_bytes()
    for length in range(1, len(whole) - 1, 7):
        path.write_bytes(whole[:length])
        store = JsonStore(path)
        saved = [doc for _, doc in store.load("a", "segments")]
        assert saved == [segment(f"text {n}", f"k{n}") for n in range(len(saved))]
        assert [report.kind for report in store.reports] == ["damaged"]


def test_a_changed_byte_in_a_text_is_noticed(path: Path) -> None:
    _filled(path).close()
    path.write_bytes(path.read_bytes().replace(b"text 2", b"text 3"))
    store = JsonStore(path)
    assert [(report.kind, report.lost) for report in store.reports] == [("damaged", 1)]
    assert store.get("a", "segments", "k2") is None
    assert store.get("a", "segments", "k1") == segment("text 1", "k1")


def test_a_file_that_was_laid_out_anew_is_read_and_a_copy_kept(path: Path) -> None:
    _filled(path).close()
    edited = json.dumps(json.loads(path.read_bytes()), indent=2)
    path.write_text(edited, encoding="utf-8")
    store = JsonStore(path)
    (report,) = store.reports
    assert report.kind == "edited"
    assert Path(str(report.set_aside)).read_text(encoding="utf-8") == edited
    assert store.get("a", "segments", "k2") == segment("text 2", "k2")


def test_an_empty_file_is_reported_and_used(path: Path) -> None:
    path.write_bytes(b"")
    store = JsonStore(path)
    assert [report.kind for report in store.reports] == ["edited"]
    assert store.commit("a", [Put("state", "s", {})]) == 1


def test_a_damaged_file_of_another_program_gives_its_whole_segments(path: Path) -> None:
    text = json.dumps({"segments": [segment("one", "k1"), segment("two", "k2")]}, indent=2)
    path.write_text(text[:-60], encoding="utf-8")
    store = JsonStore(path)
    assert [key for key, _ in store.load("default", "segments")] == ["k1"]
    assert [report.kind for report in store.reports] == ["damaged"]


@pytest.mark.parametrize(
    "content", ["[1, 2]", '{"segments": 5}', "\x00" * 50, "null", "{" * 10_000]
)
def test_what_is_no_store_is_set_aside(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")
    store = JsonStore(path)
    assert (store.sessions(), [report.kind for report in store.reports]) == ([], ["damaged"])
    assert path.with_name("stash.json.damaged-1").read_text(encoding="utf-8") == content


def test_entries_that_are_no_documents_are_counted(path: Path) -> None:
    good = segment("good", "k")
    path.write_text(json.dumps({"segments": [good, 5, None, {"session_id": 7}]}), encoding="utf-8")
    store = JsonStore(path)
    assert store.load("default", "segments") == [("k", good)]
    assert [(report.kind, report.lost) for report in store.reports] == [("damaged", 3)]


@pytest.mark.parametrize("moment", ["append_durable", "apply"])
def test_a_commit_that_is_interrupted_is_there_or_not_and_the_store_knows_which(
    path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    store = JsonStore(path)
    store.commit("a", [Put("state", "k", {"n": 1})])
    owner: Any = json_store if moment == "append_durable" else Tables
    real = getattr(owner, moment)

    def interrupted(*given: Any) -> None:
        if moment == "append_durable":
            real(*given)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.commit("a", [Put("state", "k", {"n": 2})])
    for one in (store, JsonStore(path)):
        assert (one.get("a", "state", "k"), one.revision("a")) == ({"n": 2}, 2)
    assert store.commit("a", [Put("state", "l", {})], expect=2) == 3
    assert JsonStore(path).revision("a") == 3


def test_what_was_folded_twice_within_a_tick_of_the_clock_is_noticed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system uses inodes again, and the size is the same: only the time is left."""
    real = json_store.JsonDisk._stamp

    def with_one_inode(disk: json_store.JsonDisk, file: Path) -> json_store.Stamp:
        stamp = real(disk, file)
        return stamp and (1, *stamp[1:])

    monkeypatch.setattr(json_store.JsonDisk, "_stamp", with_one_inode)
    store, other = JsonStore(path), JsonStore(path)
    store.commit("a", [Put("state", "k", {"n": 1})])
    store.close()
    os.utime(path, ns=(2**62, 2**62))
    assert store.get("a", "state", "k") == {"n": 1}
    for number in (2, 3):
        other.commit("a", [Put("state", "k", {"n": number})])
        other.close()
    assert path.stat().st_mtime_ns > 2**62
    assert (store.get("a", "state", "k"), store.revision("a")) == ({"n": 3}, 3)


class _Refused:
    """A lock on a file system that is read-only here."""

    def acquire(self) -> None:
        raise StoreError("cannot lock", errno="EROFS")


def _read_only(path: Path, meanwhile: Callable[[], object], times: int) -> JsonStore:
    """Return a store that cannot lock, and after each of so many reads something happens."""
    store = JsonStore(path)
    real, left = store._disk._read, [meanwhile] * times

    def read(file: Path) -> bytes:
        data = real(file)
        if left:
            left.pop()()
        return data

    store._process_lock = _Refused  # type: ignore[method-assign, assignment]
    store._disk._read = read  # type: ignore[method-assign]
    return store


def test_who_cannot_lock_sees_one_moment_all_the_same(path: Path) -> None:
    writer = JsonStore(path)
    reader = _read_only(path, writer.close, 1)
    writer.commit("a", [Put("state", "k", {"n": 1})])
    assert reader.get("a", "state", "k") == {"n": 1}
    assert reader.reports == ()


def test_who_cannot_lock_and_is_never_left_alone_gets_a_typed_error(path: Path) -> None:
    writer = JsonStore(path)
    reader = _read_only(path, lambda: writer.commit("a", [Put("state", "k", {})]), 100)
    writer.commit("a", [Put("state", "k", {})])
    with pytest.raises(StoreBusyError, match="every time it was read"):
        reader.get("a", "state", "k")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no such device")
def test_a_device_is_not_read_as_a_store() -> None:
    with pytest.raises(StoreError, match="/dev/full is not a file"):
        open_store("json:/dev/full").sessions()
