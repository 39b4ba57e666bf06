"""A Postgres store as a file: its tables as ctxgc made them first, and their rows as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from tools.golden.places import input_bytes

# The tables of version 1, as they are in databases that people have; not to be changed with the source.
_TABLES = """
    CREATE SCHEMA ctxgc;
    CREATE TABLE ctxgc.version (number integer NOT NULL);
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
_ORDER = {"version": "number", "sessions": "sid", "documents": "seq", "entries": "seq"}
_COUNTED = {"sessions": "sid", "documents": "seq"}


@contextmanager
def database() -> Iterator[str]:
    """Give the address of an empty database on a real server; without one, a test is skipped."""
    from tests.stores.server import fresh_database  # noqa: PLC0415 - it needs pytest

    with fresh_database() as url:
        yield url


def dump(url: str) -> bytes:
    """Return all rows of a store."""
    import psycopg  # noqa: PLC0415 - an extra

    tables = {}
    with psycopg.connect(url) as db:
        for table, column in _ORDER.items():
            asked = f"SELECT * FROM ctxgc.{table} ORDER BY {column}"  # noqa: S608 - our own names
            found = db.execute(asked.encode())
            names = [described.name for described in found.description or ()]
            rows = [[_plain(value) for value in row] for row in found]
            tables[table] = {"columns": names, "rows": rows}
    return json.dumps(tables, ensure_ascii=False).encode()


def load(url: str, name: str) -> None:
    """Put the rows of an input into an empty database, in tables as ctxgc made them first."""
    import psycopg  # noqa: PLC0415 - an extra

    tables = json.loads(input_bytes(name))
    with psycopg.connect(url) as db:
        db.execute(_TABLES.encode())
        for table in _ORDER:
            columns, rows = tables[table]["columns"], tables[table]["rows"]
            marks = ", ".join("decode(%s, 'hex')" if c == "digest" else "%s" for c in columns)
            into = f"INSERT INTO ctxgc.{table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
            with db.cursor() as cursor:
                cursor.executemany(into.encode(), rows)
        for table, column in _COUNTED.items():
            last = f"(SELECT max({column}) FROM ctxgc.{table})"  # noqa: S608
            where = f"pg_get_serial_sequence('ctxgc.{table}', '{column}')"
            db.execute(f"SELECT setval({where}, {last})".encode())


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else value
