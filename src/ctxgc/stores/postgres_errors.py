"""What Postgres and psycopg complain about, as errors of ours that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from ctxgc.errors import StoreBusyError, StoreError

_BUSY = (errors.LockNotAvailable, errors.SerializationFailure, errors.DeadlockDetected)
_HINTS: tuple[tuple[type[Exception], str], ...] = (
    (errors.DiskFull, "the server's disk is full: free some space and call again"),
    (errors.ReadOnlySqlTransaction, "the server is read-only: name the primary server"),
    (errors.InsufficientPrivilege, "grant this user the right to make and use the schema ctxgc"),
    (errors.InvalidCatalogName, "make the database first"),
    (errors.InvalidPassword, "correct user and password"),
    (errors.TooManyConnections, "raise max_connections, or use fewer processes"),
    (PoolTimeout, "the server does not answer, or all connections are in use: call again"),
    (
        psycopg.OperationalError,
        "the server cannot be reached: call again; `revision` tells whether a commit arrived",
    ),
)


@contextmanager
def postgres_errors(url: str) -> Iterator[None]:
    """Turn an error of Postgres into a StoreError; `url` names no password."""
    try:
        yield
    except (psycopg.Error, PoolTimeout) as error:
        raise translated(url, error) from None


def translated(url: str, error: Exception) -> StoreError:
    """Return our error for one of theirs."""
    state = getattr(error, "sqlstate", None)
    if isinstance(error, _BUSY):
        hint = "another process holds the same rows: call again"
        return StoreBusyError(f"{url}: {error}", hint=hint, url=url, sqlstate=state)
    hint = next((text for kind, text in _HINTS if isinstance(error, kind)), "")
    return StoreError(f"{url}: {str(error).strip()}", hint=hint, url=url, sqlstate=state)
