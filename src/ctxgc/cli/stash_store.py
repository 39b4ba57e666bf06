"""What the stash commands share: which store they mean, and how they show what is in it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from ctxgc.agents import default_home, store_in
from ctxgc.cli.output import paint, styled
from ctxgc.config import SessionSettings
from ctxgc.errors import ConfigError, InputError, StoreError, UnknownHandleError
from ctxgc.session import DEFAULT_URL, Store, inbox_of, mask_secrets, open_store

F = TypeVar("F", bound=Callable[..., Any])

PREVIEW = 72
_AGES = ((86_400, "d"), (3_600, "h"), (60, "m"))


def store_option(command: F) -> F:
    """Give a command `--store`; it gets `store_url`, None where nobody named one."""
    return click.option(
        "--store", "store_url", metavar="URL",
        help=f"json:PATH, sqlite:PATH or postgresql://...  [default: CTXGC_STORE, else {DEFAULT_URL}]",
    )(command)  # fmt: skip


def session_option(command: F) -> F:
    """Give a command `--session`."""
    return click.option("--session", metavar="ID", help="The session that is meant.")(command)


def address_of(url: str | None) -> str:
    """Return the address of the store that is meant; None for that of the environment, or the default."""
    return url or SessionSettings.from_env().store or DEFAULT_URL


@contextmanager
def command_store(url: str | None, *, new: bool = False) -> Iterator[Store]:
    """Give a store and close it afterwards; what it had to repair is told on standard error.

    Args:
        url: its address; None for the one of the environment, or the default.
        new: whether it may be made here.

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
    """Return what writes progress to a terminal on standard error, and nothing anywhere else."""

    def tell(done: int, total: int) -> None:
        if not quiet and sys.stderr.isatty():
            click.echo(f"\r{what}: {done} of {total}", nl=done == total, err=True)

    return tell


def handle_of(key: str, doc: dict[str, Any]) -> str:
    """Return what recalls a segment; where a file of others has no handles, its id."""
    return str(doc.get("handle") or key)


def count(number: int, thing: str) -> str:
    """Return for example `1 session` or `2 sessions`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def preview(text: str, words: Sequence[str] = ()) -> str:
    """Return the first line of a text that has one of the words, else that says something.

    It is short, without likely keys, and safe to print.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    sought = [word.casefold() for word in words]
    named = (line for line in lines if any(word in line.casefold() for word in sought))
    line = next(named, lines[0] if lines else "")
    shown = printable(mask_secrets(line[: PREVIEW * 4]))
    return shown if len(shown) <= PREVIEW else f"{shown[: PREVIEW - 1]}…"


def printable(text: str) -> str:
    """Return a text whose control characters a terminal does not obey."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def age(moment: object) -> str:
    """Return how long ago a time is, for example `3h`; `-` when it is no time."""
    try:
        then = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        return "-"
    if not isinstance(then, datetime):
        return "-"
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = max(0, int((datetime.now(UTC) - then).total_seconds()))
    return next(
        (f"{seconds // unit}{name}" for unit, name in _AGES if seconds >= unit), f"{seconds}s"
    )


def _check(url: str, *, new: bool) -> None:
    scheme, _, rest = url.partition(":")
    if scheme == "memory":
        raise ConfigError(
            "a memory: store lives and ends with its process",
            hint="name a json:, sqlite: or postgresql: store with --store",
            key="store",
        )
    path = rest.removeprefix("//")
    if scheme in ("json", "sqlite") and path and not new and not _is_there(url):
        agents = store_in(default_home())
        of_agents = _is_there(agents)
        raise StoreError(
            f"there is no store at {path}",
            hint="name one with --store or CTXGC_STORE"
            + (f"; coding agents keep theirs at {agents}" if of_agents else ""),
            path=path,
        )


def _is_there(url: str) -> bool:
    # What hooks left in the inbox is taken in by whoever opens the store first.
    path = url.partition(":")[2].removeprefix("//")
    return Path(path).exists() or inbox_of(url).exists()


# -- Finding segments in stores, and what lists show of them


LINES_HELP = "Only these lines, counted from 1."
_LINES = re.compile(r"(\d+)(?:-(\d+))?")


def segment_row(session_id: str, key: str, doc: dict[str, Any]) -> dict[str, Any]:
    """Return what lists show of a segment."""
    names = ("type", "tier", "tokens", "created_at", "file_path", "tags")
    return {
        "session": session_id,
        "handle": handle_of(key, doc),
        "segment_id": key,
        **{name: doc.get(name) for name in names},
        "age": age(doc.get("created_at")),
        "line": preview(str(doc.get("text", ""))),
    }


def highlighted(text: str, words: Sequence[str]) -> str:
    """Return a text with the words in it marked, for those who see colours."""
    sought = "|".join(re.escape(word) for part in words for word in part.split())
    if not sought:
        return text
    return re.sub(sought, lambda found: styled(found[0], "name"), text, flags=re.IGNORECASE)


def find_segment(store: Store, handle: str, sessions: list[str]) -> tuple[str, str, dict[str, Any]]:
    """Return the session, the id and the document of what answers to a handle, an id or a name.

    Raises:
        UnknownHandleError: nothing does.
        InputError: things in several sessions do.
    """
    found = list(_answers(store, handle, sessions))
    if not found:
        raise UnknownHandleError(
            f"nothing answers to '{handle}'",
            hint="ctxgc search WORDS finds it by what it says",
            handle=handle,
        )
    among = sorted({session_id for session_id, _, _ in found})
    if len(among) > 1:
        raise InputError(
            f"'{handle}' is in {len(among)} sessions: {', '.join(among[:5])}",
            hint="choose one with --session",
            field="handle",
        )
    # What stands in the view for a stashed segment has its handle too; the original is meant.
    return min(found, key=lambda row: row[2].get("derived_from") is not None)


def _answers(
    store: Store, handle: str, sessions: list[str]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for session_id in sessions:
        for key, doc in store.load(session_id, "segments"):
            if handle in (doc.get("handle"), key, doc.get("name"), doc.get("message_id")):
                yield session_id, key, doc


def line_range(lines: str | None) -> tuple[int, int] | None:
    """Return the first and the last line that a text such as `10-20` names.

    Raises:
        InputError: it names none.
    """
    if lines is None:
        return None
    match = _LINES.fullmatch(lines)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last:
        raise InputError(f"--lines cannot be {lines!r}", hint="for example 10-20", field="lines")
    return first, last
