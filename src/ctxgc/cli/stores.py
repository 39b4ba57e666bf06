"""What commands on stores share: which store is meant, and how its segments are found and listed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from ctxgc.agents import default_home, store_in
from ctxgc.cli.output import age, paint, preview
from ctxgc.config import SessionSettings
from ctxgc.errors import ConfigError, InputError, StoreError, UnknownHandleError
from ctxgc.session import DEFAULT_URL, Store, file_of, inbox_of, open_store

F = TypeVar("F", bound=Callable[..., Any])


def store_option(command: F) -> F:
    """Give a command `--store`, as `store_url`: None if it is not given."""
    return click.option(
        "--store", "store_url", metavar="URL",
        help=f"json:PATH, sqlite:PATH or postgresql://...  [default: CTXGC_STORE, else {DEFAULT_URL}]",
    )(command)  # fmt: skip


def session_option(command: F) -> F:
    """Give a command `--session`."""
    return click.option("--session", metavar="ID", help="Session to use.")(command)


def address_of(url: str | None) -> str:
    """Return the address of a store; None means the one of the environment, or the default."""
    return url or SessionSettings.from_env().store or DEFAULT_URL


@contextmanager
def command_store(url: str | None, *, new: bool = False) -> Iterator[Store]:
    """Open a store for a `with` block; what it had to repair is written to standard error.

    Args:
        url: its address; None for the one of the environment, or the default.
        new: whether it may be created.

    Raises:
        StoreError: there is no such store.
    """
    address = address_of(url)
    _check(address, new=new)
    store = open_store(address)
    try:
        yield store
    finally:
        for report in store.reports:
            click.echo(f"{paint('warning:', 'yellow')} {report.message}", err=True)
        store.close()


def tell_progress(what: str, *, quiet: bool) -> Callable[[int, int], None]:
    """Return a function that writes progress to standard error if that is a terminal."""

    def tell(done: int, total: int) -> None:
        if not quiet and sys.stderr.isatty():
            click.echo(f"\r{what}: {done} of {total}", nl=done == total, err=True)

    return tell


def handle_of(key: str, doc: dict[str, Any]) -> str:
    """Return what recalls a segment: its handle, or its id in files without handles."""
    return str(doc.get("handle") or key)


def _check(url: str, *, new: bool) -> None:
    if url.startswith("memory:"):
        raise ConfigError(
            "a memory: store ends with its process",
            hint="name a json:, sqlite: or postgresql: store with --store",
            key="store",
        )
    file = file_of(url)
    if file is not None and not new and not _is_there(url):
        agents = store_in(default_home())
        of_agents = _is_there(agents)
        raise StoreError(
            f"there is no store at {file}",
            hint="name one with --store or CTXGC_STORE"
            + (f"; coding agents keep theirs at {agents}" if of_agents else ""),
            path=str(file),
        )


def _is_there(url: str) -> bool:
    # What hooks left in the inbox is taken in when the store is opened.
    file = file_of(url)
    return (file is not None and file.exists()) or inbox_of(url).exists()


# -- Segments: how they are found and listed


LINES_HELP = "Only these lines; the first is 1."
_LINES = re.compile(r"(\d+)(?:-(\d+))?")


def segment_row(session_id: str, key: str, doc: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a segment in lists."""
    names = ("type", "tier", "tokens", "created_at", "file_path", "tags")
    return {
        "session": session_id,
        "handle": handle_of(key, doc),
        "segment_id": key,
        **{name: doc.get(name) for name in names},
        "age": age(doc.get("created_at")),
        "line": preview(str(doc.get("text", ""))),
    }


def find_segment(store: Store, handle: str, sessions: list[str]) -> tuple[str, str, dict[str, Any]]:
    """Return the session, the id and the document of the segment with a handle, an id or a name.

    Raises:
        UnknownHandleError: there is none.
        InputError: several sessions have one.
    """
    found = list(_matches(store, handle, sessions))
    if not found:
        raise UnknownHandleError(
            f"no segment with the handle '{handle}'",
            hint="ctxgc search WORDS finds it by its text",
            handle=handle,
        )
    among = sorted({session_id for session_id, _, _ in found})
    if len(among) > 1:
        raise InputError(
            f"'{handle}' is in {len(among)} sessions: {', '.join(among[:5])}",
            hint="choose one with --session",
            field="handle",
        )
    # The tombstone of a stashed segment has its handle too; the original is meant.
    return min(found, key=lambda row: row[2].get("derived_from") is not None)


def _matches(
    store: Store, handle: str, sessions: list[str]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for session_id in sessions:
        for key, doc in store.load(session_id, "segments"):
            if handle in (doc.get("handle"), key, doc.get("name"), doc.get("message_id")):
                yield session_id, key, doc


def line_range(lines: str | None) -> tuple[int, int] | None:
    """Return the first and the last line of a range such as `10-20`.

    Raises:
        InputError: it is not a range.
    """
    if lines is None:
        return None
    match = _LINES.fullmatch(lines)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last:
        raise InputError(f"--lines cannot be {lines!r}", hint="for example 10-20", field="lines")
    return first, last
