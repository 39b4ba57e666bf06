"""What commands on stores share: which store is meant, and how its segments are found and listed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar

import click

from ctxgc.cli.output import age, paint, preview
from ctxgc.config import SessionSettings
from ctxgc.errors import ConfigError, InputError, StoreError, UnknownHandleError
from ctxgc.places import user_store
from ctxgc.session import Store, chosen_sessions, default_url, file_of, inbox_of, open_store

F = TypeVar("F", bound=Callable[..., Any])


def store_option(command: F) -> F:
    """Give a command `--store`, as `store_url`: None if it is not given."""
    return click.option(
        "--store", "store_url", metavar="URL",
        help="json:PATH, sqlite:PATH or postgresql://...  [default: CTXGC_STORE, else the user's]",
    )(command)  # fmt: skip


def session_option(command: F) -> F:
    """Give a command `--session`."""
    return click.option("--session", metavar="ID", help="Session to use.")(command)


def agents_address(url: str | None) -> str:
    """Return the store for the sessions of coding agents: the named one, or else the user's."""
    return url or SessionSettings.from_env().store or user_store()


def addresses_of(url: str | None) -> list[str]:
    """Return the addresses of the stores that a command looks into.

    That is the one for coding agents and, if no store is named, that of the library in this folder.
    """
    of_agents = agents_address(url)
    is_named = of_agents != user_store()
    return [of_agents] if is_named else [of_agents, *filter(is_there, [default_url()])]


def address_of(url: str | None) -> str:
    """Return the address of the one store that a command works on: of those the first that exists."""
    found = addresses_of(url)
    return next(filter(is_there, found), found[0])


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


@contextmanager
def command_stores(url: str | None) -> Iterator[list[Store]]:
    """Open every store that a command looks into for a `with` block, the one that is meant first.

    Raises:
        StoreError: there is none.
    """
    found = [each for each in addresses_of(url) if is_there(each)] or [address_of(url)]
    with ExitStack() as stack:
        yield [stack.enter_context(command_store(each)) for each in found]


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
    if not new and not is_there(url):
        raise StoreError(
            f"there is no store at {file}",
            hint="the first prune or install makes one; or name another with --store or CTXGC_STORE",
            path=str(file),
        )


def is_there(url: str) -> bool:
    """Return whether a store exists, or what hooks left for it."""
    # What hooks left in the inbox is taken in when the store is opened.
    file = file_of(url)
    return file is None or file.exists() or inbox_of(url).exists()


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


def find_in_stores(
    stores: Sequence[Store], handle: str, session: str | None
) -> tuple[Store, str, str, dict[str, Any]]:
    """Return what `find_segment` finds in the first store that has it, and that store.

    Raises:
        UnknownHandleError: none of them has it.
        InputError: several sessions have one, or there is no such session.
    """
    *others, last = stores_with(stores, session)
    for store in others:
        with suppress(UnknownHandleError):
            return store, *find_segment(store, handle, _named(store, session))
    return last, *find_segment(last, handle, _named(last, session))


def stores_with(stores: Sequence[Store], session: str | None) -> list[Store]:
    """Return the stores that have a session; all of them if none is named.

    Raises:
        InputError: none of them has it.
    """
    having = [store for store in stores if session is None or store.revision(session)]
    if not having:
        _named(stores[0], session)
    return having


def _named(store: Store, session: str | None) -> list[str]:
    return chosen_sessions(store, None if session is None else [session])


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
