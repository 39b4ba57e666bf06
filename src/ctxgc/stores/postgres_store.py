"""The Postgres store: many hosts share sessions and stash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from ctxgc.core import without_passwords
from ctxgc.errors import StoreBusyError, StoreError, StoreVersionError
from ctxgc.stores.base import (
    COLLECTIONS,
    CollectionName,
    SearchFilters,
    SessionInfo,
    StoreHit,
    StoreReport,
    Write,
    check_collection,
    check_name,
    check_revision,
    escape,
    opened,
    prepare,
    unescape,
)
from ctxgc.stores.concurrency import register_for_forks
from ctxgc.stores.postgres_documents import PostgresSource, write
from ctxgc.stores.search import parse_query, rank

try:
    import psycopg
    from psycopg import errors
    from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout
except ImportError as missing:
    raise StoreError(
        "a Postgres store needs the package psycopg", hint="pip install 'ctxgc[postgres]'"
    ) from missing

if TYPE_CHECKING:
    from psycopg import Connection

TIMEOUT = 30.0
CONNECT_TIMEOUT = 10
MOST_CONNECTIONS = 8

# No prepared statements: they do not survive poolers such as pgbouncer.
_OPTIONS: dict[str, Any] = {"autocommit": True, "prepare_threshold": None}
_OF_PARENTS: list[object] = []

_BUSY = (errors.LockNotAvailable, errors.SerializationFailure, errors.DeadlockDetected)
_HINTS: tuple[tuple[type[Exception], str], ...] = (
    (errors.DiskFull, "the server's disk is full: free some space and call again"),
    (errors.ReadOnlySqlTransaction, "the server is read-only: use the primary server"),
    (errors.InsufficientPrivilege, "grant this user the right to create and use the schema ctxgc"),
    (errors.InvalidCatalogName, "create the database first"),
    (errors.InvalidPassword, "check user and password"),
    (errors.TooManyConnections, "raise max_connections, or use fewer processes"),
    (PoolTimeout, "the server does not answer, or all connections are in use: call again"),
    (
        psycopg.OperationalError,
        "the server cannot be reached: call again; `revision` shows whether a commit arrived",
    ),
)


class PostgresStore:
    """Keeps sessions in the schema `ctxgc` of a Postgres database, over a pool of connections.

    Raises:
        StoreVersionError: a newer ctxgc wrote the tables.
        StoreError: the server cannot be reached, or refuses this user.
    """

    reports: tuple[StoreReport, ...] = ()

    def __init__(self, url: str, *, timeout: float = TIMEOUT) -> None:
        self.url = without_password(url)
        self._dsn = url
        self._timeout = timeout
        self._lock = Lock()
        self._pool: ConnectionPool[Connection[Any]] | None = None
        register_for_forks(self)
        with (
            _postgres_errors(self.url),
            psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT, **_OPTIONS) as db,
        ):
            _migrate(db)

    def commit(self, session_id: str, writes: Sequence[Write], *, expect: int | None = None) -> int:
        """Write a batch, all or nothing, and return the session's new revision."""
        prepared = prepare(session_id, writes)
        with self._transaction() as db:
            if prepared:
                return write(db, session_id, prepared, expect)
            found = _revision(db, session_id)
            check_revision(session_id, expect, found)
            return found

    def revision(self, session_id: str) -> int:
        """Return how many commits a session has had; 0 if it is not known."""
        with self._transaction() as db:
            return _revision(db, session_id)

    def load(self, session_id: str, collection: CollectionName) -> list[tuple[str, dict[str, Any]]]:
        """Return all documents of a collection with their keys, in the order of first insertion."""
        check_collection(collection)
        with self._transaction() as db:
            rows = db.execute(
                """SELECT key, doc FROM ctxgc.documents JOIN ctxgc.sessions USING (sid)
                   WHERE session_id = %s AND collection = %s ORDER BY seq""",
                (escape(session_id), collection),
            )
            return [(name := unescape(key), opened(collection, name, doc)) for key, doc in rows]

    def get(self, session_id: str, collection: CollectionName, key: str) -> dict[str, Any] | None:
        """Return one document, or None."""
        check_collection(collection)
        with self._transaction() as db:
            return _get(db, session_id, collection, key)

    def sessions(self) -> list[SessionInfo]:
        """Return all sessions in the order of their ids."""
        with self._transaction("REPEATABLE READ READ ONLY") as db:
            rows = db.execute("SELECT sid, collection, count(*) FROM ctxgc.documents GROUP BY 1, 2")
            counts = {(sid, collection): count for sid, collection, count in rows}
            infos = [
                SessionInfo(
                    session_id=unescape(name),
                    revision=revision,
                    created_at=created_at,
                    updated_at=updated_at,
                    counts={each: counts.get((sid, each), 0) for each in COLLECTIONS},
                )
                for sid, name, revision, created_at, updated_at in db.execute(
                    "SELECT sid, session_id, revision, created_at, updated_at FROM ctxgc.sessions"
                )
            ]
        return sorted(infos, key=lambda info: info.session_id)

    def search(
        self,
        query: str,
        *,
        session_id: str | None = None,
        filters: SearchFilters | None = None,
        limit: int = 10,
    ) -> list[StoreHit]:
        """Return the segments that match best, best first, in one session or in all."""
        asked = parse_query(query, filters)
        with self._transaction("REPEATABLE READ READ ONLY") as db:
            sid = None if session_id is None else _sid(db, session_id)
            return [
                StoreHit(session_id=name, key=key, score=score, doc=doc)
                for score, name, key in rank(PostgresSource(db, sid), asked, limit)
                if (doc := _get(db, name, "segments", key)) is not None
            ]

    def drop_session(self, session_id: str) -> None:
        """Delete a session with all its documents."""
        check_name("session_id", session_id)
        with self._transaction() as db:
            db.execute("DELETE FROM ctxgc.sessions WHERE session_id = %s", (escape(session_id),))

    def close(self) -> None:
        """Close all connections; they reopen if the store is used again."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def before_fork(self) -> None:
        """Keep other threads from opening or closing the pool until `after_fork`."""
        self._lock.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        """Continue; a child opens its own connections."""
        if in_child and self._pool is not None:
            # Kept, not closed: closing would end the parent's connections.
            _OF_PARENTS.append(self._pool)
            self._pool = None
        self._lock.release()

    @contextmanager
    def _transaction(self, kind: str = "") -> Iterator[Connection[Any]]:
        """Give a connection inside a transaction; an error rolls everything back."""
        with _postgres_errors(self.url), ExitStack() as stack:
            db = self._connected(stack)
            stack.enter_context(db.transaction())
            if kind:
                db.execute(f"SET TRANSACTION ISOLATION LEVEL {kind}".encode())
            yield db

    def _connected(self, stack: ExitStack) -> Connection[Any]:
        while True:
            # Another thread may close the store between the two calls; it reopens.
            with suppress(PoolClosed):
                return stack.enter_context(self._open().connection())

    def _open(self) -> ConnectionPool[Connection[Any]]:
        with self._lock:
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._dsn,
                    min_size=1,
                    max_size=MOST_CONNECTIONS,
                    # A short timeout for locks must still leave time to connect.
                    timeout=max(self._timeout, CONNECT_TIMEOUT),
                    kwargs=_OPTIONS,
                    configure=self._configure,
                    # A connection cut by a restart of the server is replaced before use.
                    check=ConnectionPool.check_connection,
                    open=True,
                )
            return self._pool

    def _configure(self, db: Connection[Any]) -> None:
        """Wait for locks no longer than the timeout, and always for the disk."""
        db.execute(
            """SELECT set_config('lock_timeout', %s, false),
                      set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                                 WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,
                                 false)""",
            (f"{int(self._timeout * 1000)}ms",),
        )


def without_password(url: str) -> str:
    """Return a Postgres URL without its password."""
    return without_passwords(url).rstrip("?&")


def _revision(db: Connection[Any], session_id: str) -> int:
    row = db.execute(
        "SELECT revision FROM ctxgc.sessions WHERE session_id = %s", (escape(session_id),)
    ).fetchone()
    return int(row[0]) if row else 0


def _sid(db: Connection[Any], session_id: str) -> int:
    row = db.execute(
        "SELECT sid FROM ctxgc.sessions WHERE session_id = %s", (escape(session_id),)
    ).fetchone()
    return int(row[0]) if row else 0


def _get(
    db: Connection[Any], session_id: str, collection: CollectionName, key: str
) -> dict[str, Any] | None:
    row = db.execute(
        """SELECT doc FROM ctxgc.documents JOIN ctxgc.sessions USING (sid)
           WHERE session_id = %s AND collection = %s AND key = %s""",
        (escape(session_id), collection, escape(key)),
    ).fetchone()
    return opened(collection, key, row[0]) if row else None


# -- Errors


@contextmanager
def _postgres_errors(url: str) -> Iterator[None]:
    """Turn an error of Postgres into a StoreError; `url` has no password."""
    try:
        yield
    except (psycopg.Error, PoolTimeout) as error:
        raise _translated(url, error) from None


def _translated(url: str, error: Exception) -> StoreError:
    """Return our error for one of theirs."""
    state = getattr(error, "sqlstate", None)
    if isinstance(error, _BUSY):
        hint = "another process holds the same rows: call again"
        return StoreBusyError(f"{url}: {error}", hint=hint, url=url, sqlstate=state)
    hint = next((text for kind, text in _HINTS if isinstance(error, kind)), "")
    return StoreError(f"{url}: {str(error).strip()}", hint=hint, url=url, sqlstate=state)


# -- Versions


_LOCK = 0x43544743  # "CTGC"

_V1_SESSIONS_DOCUMENTS_AND_SEARCH = """
    CREATE TABLE ctxgc.sessions (
        sid bigserial PRIMARY KEY, session_id text NOT NULL UNIQUE, revision bigint NOT NULL,
        created_at timestamptz NOT NULL, updated_at timestamptz NOT NULL,
        segments bigint NOT NULL DEFAULT 0, words bigint NOT NULL DEFAULT 0);
    CREATE TABLE ctxgc.documents (
        seq bigserial PRIMARY KEY,
        sid bigint NOT NULL REFERENCES ctxgc.sessions ON DELETE CASCADE,
        collection text NOT NULL, key text NOT NULL, doc text NOT NULL,
        UNIQUE (sid, collection, key));
    CREATE TABLE ctxgc.entries (
        seq bigint PRIMARY KEY REFERENCES ctxgc.documents ON DELETE CASCADE,
        sid bigint NOT NULL, key text NOT NULL, length bigint NOT NULL, created bigint,
        digest bytea NOT NULL, marks text[] NOT NULL, terms text[] NOT NULL, words text NOT NULL);
    CREATE INDEX entries_by_term ON ctxgc.entries USING gin (terms, marks)
"""

# Documents carry digests from here on; the tables stay as they are.
_V2_DIGESTS = "SELECT 1"

# Append only: the place in this list is the version of the tables.
_MIGRATIONS: tuple[str, ...] = (_V1_SESSIONS_DOCUMENTS_AND_SEARCH, _V2_DIGESTS)


def _migrate(db: Connection[Any]) -> None:
    """Migrate the tables to the newest version, in one transaction, one process at a time.

    Raises:
        StoreVersionError: a newer ctxgc wrote them.
    """
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        db.execute("CREATE SCHEMA IF NOT EXISTS ctxgc")
        db.execute("CREATE TABLE IF NOT EXISTS ctxgc.version (number integer NOT NULL)")
        row = db.execute("SELECT max(number) FROM ctxgc.version").fetchone()
        version = (row[0] if row else None) or 0
        if version > len(_MIGRATIONS):
            raise StoreVersionError(
                f"the database has version {version}, this ctxgc reads {len(_MIGRATIONS)}",
                hint="use a newer ctxgc; the database was left as it is",
                found=version,
                known=len(_MIGRATIONS),
            )
        for number, step in enumerate(_MIGRATIONS[version:], version + 1):
            db.execute(step.encode())
            db.execute("INSERT INTO ctxgc.version VALUES (%s)", (number,))
