"""The database file: its form, its versions, other programs' files, and damage."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxgc.errors import StoreBusyError, StoreDamagedError, StoreError, StoreVersionError
from ctxgc.files import FileLock
from ctxgc.stores import Put, open_store, sqlite_file
from ctxgc.stores.sqlite_file import SqliteFile, transaction
from ctxgc.stores.sqlite_store import SqliteStore
from tests.stores.places import segment


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stash.db"


def _filled(path: Path, count: int = 200) -> SqliteStore:
    store = SqliteStore(path)
    puts = [Put("segments", f"k{n}", segment(f"text {n} " * 40, f"k{n}")) for n in range(count)]
    store.commit("a", [*puts, Put("state", "s", {"n": 1})])
    return store


def test_the_file_says_what_it_is(path: Path) -> None:
    _filled(path).close()
    with closing(sqlite3.connect(path)) as db:
        pragmas = {
            name: db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("application_id", "user_version", "journal_mode")
        }
    assert pragmas == {"application_id": 0x43544743, "user_version": 2, "journal_mode": "wal"}


def test_every_commit_is_synced(path: Path) -> None:
    store = _filled(path)
    assert store._file.open().execute("PRAGMA synchronous").fetchone() == (2,)


def test_all_files_are_private(path: Path) -> None:
    _filled(path)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    names = ["stash.db", "stash.db-shm", "stash.db-wal", "stash.db.lock"]
    assert modes == dict.fromkeys(names, 0o600)


def test_documents_can_be_read_with_any_sqlite_tool(path: Path) -> None:
    _filled(path, 1).close()
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT session_id, key, doc FROM documents JOIN sessions USING (sid)")
        saved = {(session, key): json.loads(doc) for session, key, doc in rows}
    assert len(saved["a", "k0"].pop("~crc")) == 8
    assert saved["a", "k0"] == segment("text 0 " * 40, "k0")


def test_a_file_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    _filled(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(StoreVersionError) as error:
        SqliteStore(path)
    assert (error.value.details, path.read_bytes()) == ({"found": 99, "known": 2}, before)


def test_a_migration_that_fails_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _filled(path).close()

    def v2_that_fails(db: sqlite3.Connection) -> None:
        db.execute("DROP TABLE documents")
        db.execute("SELECT * FROM no_table")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file, "MIGRATIONS", (*sqlite_file.MIGRATIONS, v2_that_fails))
        with pytest.raises(StoreError, match="no such table"):
            SqliteStore(path)
    assert SqliteStore(path).get("a", "state", "s") == {"n": 1}


def test_an_older_file_is_brought_up_to_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _filled(path).close()

    def v2_adds_a_table(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE extra (x)")

    monkeypatch.setattr(sqlite_file, "MIGRATIONS", (*sqlite_file.MIGRATIONS, v2_adds_a_table))
    assert SqliteStore(path).get("a", "state", "s") == {"n": 1}
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (3,)
        assert db.execute("SELECT count(*) FROM extra").fetchone() == (0,)


@pytest.mark.parametrize("moment", ["PRAGMA user_version", "SELECT count", "BEGIN IMMEDIATE"])
def test_a_file_that_another_process_makes_meanwhile_is_taken_for_ours(
    path: Path, moment: str
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")

        def let_the_other_come_first(statement: str) -> None:
            if statement.startswith(moment):
                db.set_trace_callback(None)
                _filled(path).close()

        db.set_trace_callback(let_the_other_come_first)
        sqlite_file.migrate(db, path)
        assert not db.in_transaction
    assert SqliteStore(path).get("a", "state", "s") == {"n": 1}


def test_a_place_where_sqlite_keeps_no_log_is_refused(path: Path) -> None:
    # This way of opening has no memory that processes share, like some network file systems.
    address = f"file:{path}?vfs=unix-none"
    with (
        closing(sqlite3.connect(address, uri=True, isolation_level=None)) as db,
        pytest.raises(StoreError, match="cannot keep a write-ahead log") as error,
    ):
        SqliteFile(path, 0)._set_up(db)
    assert error.value.details == {"path": str(path), "found": "delete"}


def test_files_of_others_are_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")
    with pytest.raises(StoreDamagedError, match="not a ctxgc store"):
        SqliteStore(path)
    path.with_name("note").write_bytes(b"dear diary " * 100)
    with pytest.raises(StoreDamagedError, match="is not a SQLite database"):
        SqliteStore(path.with_name("note"))
    assert path.with_name("note").read_bytes() == b"dear diary " * 100


def _damage(path: Path) -> None:
    """Overwrite a page with segments in the middle of the file."""
    with closing(sqlite3.connect(path)) as db:
        where = db.execute(
            "SELECT pageno FROM dbstat WHERE name = 'documents' AND pagetype = 'leaf' LIMIT 1 OFFSET 3"
        ).fetchone()[0]
        size = db.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray(path.read_bytes())
    data[(where - 1) * size : where * size] = os.urandom(size)
    path.write_bytes(data)


def test_a_damaged_database_is_set_aside_and_what_can_be_read_is_saved(path: Path) -> None:
    _filled(path).close()
    _damage(path)
    store = SqliteStore(path)
    with pytest.raises(StoreDamagedError) as error:
        store.load("a", "segments")
    assert "what can be read will be saved" in error.value.hint
    saved = dict(store.load("a", "segments"))
    (report,) = store.reports
    assert (report.saved, report.lost) == (len(saved) + 1, 200 - len(saved))
    assert 150 < len(saved) < 200
    assert all(saved[key] == segment(f"text {key[1:]} " * 40, key) for key in saved)
    assert (store.get("a", "state", "s"), store.revision("a")) == ({"n": 1}, 1)
    assert len(store.search("text", limit=500)) == len(saved)
    assert path.with_name("stash.db.damaged-1").exists()
    store.close()
    assert SqliteStore(path).reports == ()


def test_a_damaged_database_that_others_use_is_not_taken_from_them(path: Path) -> None:
    _filled(path).close()
    _damage(path)
    store, other = SqliteStore(path), SqliteStore(path)
    with pytest.raises(StoreDamagedError):
        store.load("a", "segments")
    with pytest.raises(StoreDamagedError, match="in use by other processes"):
        store.revision("a")
    other.close()
    assert store.revision("a") == 1


def test_a_damaged_database_that_another_process_saves_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _filled(path).close()
    _damage(path)
    with closing(SqliteStore(path)) as store, pytest.raises(StoreDamagedError):
        store.load("a", "segments")
    saving, acquire = FileLock(path.with_name("stash.db.lock"), 0), FileLock.acquire
    saving.acquire()

    def when_it_is_saved(lock: FileLock, *, shared: bool = False) -> None:
        if shared:
            monkeypatch.undo()
            saving.release()
            SqliteStore(path).close()
        acquire(lock, shared=shared)

    monkeypatch.setattr(FileLock, "acquire", when_it_is_saved)
    store = SqliteStore(path)
    assert (store.revision("a"), store.reports) == (1, ())


class _Interrupted(sqlite3.Connection):
    """Gets Ctrl-C while it begins a transaction; Python tells it as soon as that is done."""

    def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
        """Execute a statement."""
        done = super().execute(sql, *given)
        if sql.startswith("BEGIN"):
            raise KeyboardInterrupt
        return done


def test_who_is_interrupted_while_a_transaction_begins_leaves_none_open(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None, factory=_Interrupted)) as db:
        with pytest.raises(KeyboardInterrupt), transaction(db, "IMMEDIATE"):
            pytest.fail("it was interrupted before")
        assert not db.in_transaction


def test_a_locked_database_is_a_typed_timeout(path: Path) -> None:
    store = SqliteStore(path, timeout=0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError):
            store.commit("a", [Put("state", "s", {})])
    assert store.commit("a", [Put("state", "s", {})]) == 1


def test_a_directory_in_place_of_the_file_is_a_typed_error(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StoreError):
        SqliteStore(path)


_ONE_BATCH = """
import os, sys
from ctxgc.stores import Put, open_store
store = open_store(sys.argv[1])
store.commit("a", [Put("state", "warm", {})])
puts = [Put("segments", f"k{n}", {"text": f"text {n}", "type": "log"}) for n in range(100)]
os.access("/start-of-batch", 0)
store.commit("a", puts)
os.access("/end-of-batch", 0)
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("url", ["sqlite:{}/stash.db", "json:{}/stash.json"])
def test_a_batch_of_a_hundred_is_one_sync(url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = subprocess.run(
        ["strace", "-f", "-o", str(log), "-e", "trace=fsync,fdatasync,access,faccessat,faccessat2",
         sys.executable, "-c", _ONE_BATCH, url.format(tmp_path)],
        capture_output=True, check=False, encoding="utf-8",
    )  # fmt: skip
    if "Operation not permitted" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    text = log.read_text(encoding="utf-8")
    inside = text[text.index("/start-of-batch") : text.index("/end-of-batch")]
    assert len(re.findall(r"f(?:data)?sync\(", inside)) == 1


def test_the_url_opens_the_store_again(path: Path) -> None:
    store = _filled(path)
    assert open_store(store.url).get("a", "state", "s") == {"n": 1}
