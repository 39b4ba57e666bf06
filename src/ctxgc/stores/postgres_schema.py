"""The tables of a Postgres store, and the steps that lead from every older version to this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxgc.errors import StoreVersionError

if TYPE_CHECKING:
    from psycopg import Connection

_LOCK = 0x43544743  # "CTGC"

V1_SESSIONS_DOCUMENTS_AND_SEARCH = """
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

# Append only: the place in this list is the version of the tables.
MIGRATIONS: tuple[str, ...] = (V1_SESSIONS_DOCUMENTS_AND_SEARCH,)


def migrate(db: Connection[Any]) -> None:
    """Bring the tables to the newest version, in one transaction, one process at a time.

    Raises:
        StoreVersionError: a newer ctxgc wrote them.
    """
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        db.execute("CREATE SCHEMA IF NOT EXISTS ctxgc")
        db.execute("CREATE TABLE IF NOT EXISTS ctxgc.version (number integer NOT NULL)")
        row = db.execute("SELECT max(number) FROM ctxgc.version").fetchone()
        version = (row[0] if row else None) or 0
        if version > len(MIGRATIONS):
            raise StoreVersionError(
                f"the database has version {version}, this ctxgc reads {len(MIGRATIONS)}",
                hint="use a newer ctxgc; the database was left as it is",
                found=version,
                known=len(MIGRATIONS),
            )
        for number, step in enumerate(MIGRATIONS[version:], version + 1):
            db.execute(step.encode())
            db.execute("INSERT INTO ctxgc.version VALUES (%s)", (number,))
