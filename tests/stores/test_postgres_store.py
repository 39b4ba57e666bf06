"""What only a server can do wrong, and what a fleet relies on."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from ctxgc.errors import StoreBusyError, StoreError, StoreVersionError
from ctxgc.stores import Put, open_store
from ctxgc.stores.postgres_store import PostgresStore, without_password
from tests.stores.places import segment

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://user:secret@host:5432/db", "postgresql://user@host:5432/db"),
        ("postgresql://user:a:b@host/db", "postgresql://user@host/db"),
        (
            "postgres://host/db?password=secret&sslmode=require",
            "postgres://host/db?sslmode=require",
        ),
        ("postgresql://host/db?password=secret", "postgresql://host/db"),
        ("postgresql:///db?host=/tmp", "postgresql:///db?host=/tmp"),
    ],
)
def test_no_password_is_ever_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_a_server_that_is_not_there_is_a_typed_error_without_the_password() -> None:
    with pytest.raises(StoreError) as error:
        PostgresStore("postgresql://user:secret@127.0.0.1:1/db")
    assert "call again" in error.value.hint
    assert "secret" not in f"{error.value} {error.value.details} {error.value.__cause__}"


def test_tables_of_a_newer_version_are_refused_and_left_alone(
    empty_database: Callable[[], str],
) -> None:
    url = empty_database()
    open_store(url).close()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("INSERT INTO ctxgc.version VALUES (99)")
    with pytest.raises(StoreVersionError) as error:
        PostgresStore(url)
    assert error.value.details == {"found": 99, "known": 2}


def test_of_many_that_expect_the_same_revision_one_wins(empty_database: Callable[[], str]) -> None:
    store = PostgresStore(empty_database())
    won: list[int] = []
    lost: list[StoreBusyError] = []

    def attempt(number: int) -> None:
        try:
            won.append(store.commit("a", [Put("state", "k", {"n": number})], expect=0))
        except StoreBusyError as error:
            lost.append(error)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (won, len(lost)) == ([1], 7)
    assert {error.details["found"] for error in lost} == {1}
    store.close()


def test_a_row_that_another_holds_for_too_long_is_a_typed_timeout(
    empty_database: Callable[[], str],
) -> None:
    url = empty_database()
    store = PostgresStore(url, timeout=0.2)
    store.commit("a", [Put("state", "k", {})])
    with psycopg.connect(url) as db:
        db.execute("UPDATE ctxgc.sessions SET revision = revision")
        with pytest.raises(StoreBusyError):
            store.commit("a", [Put("state", "k", {"n": 2})])
    assert store.commit("a", [Put("state", "k", {"n": 3})]) == 2
    store.close()


def test_a_short_wait_for_rows_leaves_time_to_connect(empty_database: Callable[[], str]) -> None:
    store = PostgresStore(empty_database(), timeout=0.001)
    assert store.commit("a", [Put("state", "k", {})]) == 1
    store.close()


def test_a_commit_waits_for_the_disk_even_if_the_server_would_not(
    empty_database: Callable[[], str],
) -> None:
    url = empty_database()
    joint = "&" if "?" in url else "?"
    store = PostgresStore(f"{url}{joint}options=-csynchronous_commit%3Doff")
    with store._transaction() as db:
        assert db.execute("SHOW synchronous_commit").fetchone() == ("on",)
    store.close()


def test_the_words_of_segments_have_an_index(empty_database: Callable[[], str]) -> None:
    url = empty_database()
    store = PostgresStore(url)
    store.commit("a", [Put("segments", f"k{n}", segment(f"w{n}", f"k{n}")) for n in range(300)])
    store.close()
    with psycopg.connect(url) as db:
        db.execute("ANALYZE ctxgc.entries")
        db.execute("SET enable_seqscan = off")
        rows = db.execute("EXPLAIN SELECT 1 FROM ctxgc.entries WHERE terms @> ARRAY['w7']")
        assert "entries_by_term" in str(rows.fetchall())


def test_without_psycopg_the_error_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from ctxgc.stores import open_store\n"
        "try: open_store('postgresql://localhost/x')\n"
        "except Exception as error: print(type(error).__name__, error.hint)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, encoding="utf-8"
    )
    assert done.stdout == "StoreError pip install 'ctxgc[postgres]'\n"


def test_a_store_that_another_thread_closes_at_this_moment_opens_again(
    empty_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore(empty_database())
    opened = store._open

    def closed_by_another() -> object:
        pool = opened()
        monkeypatch.undo()
        store.close()
        return pool

    monkeypatch.setattr(store, "_open", closed_by_another)
    assert store.commit("a", [Put("state", "k", {})]) == 1
    store.close()
