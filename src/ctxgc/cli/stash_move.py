"""`ctxgc stash export`, `import` and `migrate`: carrying sessions from one place to another."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from ctxgc.cli.report import output_options, paint, write_json
from ctxgc.cli.stash_store import count, opened, session_option, store_option, tell_progress
from ctxgc.errors import InputError, StoreError
from ctxgc.stores import Store
from ctxgc.stores.exchange import (
    UNMASKABLE,
    Entry,
    chosen_sessions,
    entries_of,
    read_export,
    to_json,
    to_lines,
    write_export,
)
from ctxgc.stores.files import os_errors
from ctxgc.stores.importing import import_entries
from ctxgc.stores.migrating import migrate_sessions

STDIO = "-"


@click.command(short_help="Write sessions to a file.")
@click.argument("file", metavar="FILE")
@store_option
@session_option
@click.option(
    "--format", "form", type=click.Choice(["lines", "json"]), default="lines", show_default=True,
    help='JSON lines with a digest, or one {"segments": [...]} file, which is a json: store.',
)  # fmt: skip
@click.option(
    "--mask-secrets/--no-mask", "mask", default=True, show_default=True,
    help="Leave likely keys out; checkpoints cannot be masked and stay behind.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@output_options
def export(
    *,
    file: str,
    store_url: str | None,
    session: str | None,
    form: str,
    mask: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write sessions to FILE, readable for you alone (0600); `-` is standard output.

    The file notices by itself when it was cut or changed. Nothing in the store changes.
    """
    path = Path(file)
    if file != STDIO and path.exists() and not force:
        raise StoreError(f"{path} is there already", hint="add --force, or name another file")
    with opened(store_url) as store:
        sessions = chosen_sessions(store, None if session is None else [session])
        left = _left_behind(store, sessions) if mask else 0
        counted = _Counted(entries_of(store, sessions, mask=mask))
        pieces = to_lines(counted, masked=mask) if form == "lines" else _json(counted)
        _put(file, pieces)
    if left:
        _warn(
            f"{count(left, 'checkpoint')} stayed behind: no mask fits them (--no-mask takes them along)"
        )
    done = {"file": file, "sessions": len(sessions), "documents": counted.count, "masked": mask}
    if file == STDIO or quiet:
        return
    if as_json:
        write_json({**done, "checkpoints_left": left})
    else:
        said = f"{count(len(sessions), 'session')}, {count(counted.count, 'document')} in {file}"
        click.echo(f"{paint('ok:', 'green')} {said}")


@click.command("import", short_help="Take the sessions of a file into a store.")
@click.argument("file", metavar="FILE")
@store_option
@session_option
@click.option("--into", metavar="ID", help="The name that the session gets in the store.")
@output_options
def import_(
    *,
    file: str,
    store_url: str | None,
    session: str | None,
    into: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Take the sessions of FILE into a store; `-` is standard input. Twice is the same as once.

    New sessions come in whole. One that the store has gets the segments that it misses, as stashed
    ones. Another text under the same id is never written over: then nothing is imported.
    """
    export_ = read_export(Path(file), _get(file), datetime.now(UTC))
    entries = [entry for entry in export_.entries if session in (None, entry.session_id)]
    if session is not None and not entries:
        raise InputError(f"{file} has no session {session!r}", hint="leave --session out")
    with opened(store_url, new=True) as store:
        progress = tell_progress("import", quiet=quiet)
        done = import_entries(store, entries, into=into, progress=progress)
    if as_json:
        write_json({**msgspec.to_builtins(done), "masked": export_.masked})
    elif not quiet:
        ok = paint("ok:", "green")
        counts = f"{count(done.added, 'document')} added, {done.present} present, {done.kept} kept"
        click.echo(f"{ok} {count(len(done.sessions), 'session')}: {counts}")


@click.command(short_help="Copy sessions from one store to another.")
@click.argument("source_url", metavar="FROM")
@click.argument("target_url", metavar="TO")
@session_option
@click.option("--replace", is_flag=True, help="Replace sessions that differ in TO.")
@output_options
def migrate(
    *,
    source_url: str,
    target_url: str,
    session: str | None,
    replace: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Copy sessions from the store FROM to the store TO, byte for byte, and verify them.

    FROM is not changed. After an interruption run it again: what is in TO already is not copied
    twice. End the agents that work on the sessions first; their writes are noticed.
    """
    with opened(source_url) as source, opened(target_url, new=True) as target:
        if source.url == target.url:
            raise InputError("FROM and TO are the same store", hint="name two", field="TO")
        progress = tell_progress("migrate", quiet=quiet)
        chosen = None if session is None else [session]
        done = migrate_sessions(source, target, chosen, replace=replace, progress=progress)
    if as_json:
        write_json(msgspec.to_builtins(done))
    elif not quiet:
        said = f"{count(len(done.copied), 'session')} copied, {len(done.present)} present, all verified"
        click.echo(
            f"{paint('ok:', 'green')} {said} ({count(sum(done.copied.values()), 'document')})"
        )


class _Counted:
    """Entries that are counted as they pass."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = iter(entries)
        self.count = 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> Entry:
        entry = next(self._entries)
        self.count += 1
        return entry


def _json(entries: Iterable[Entry]) -> Iterable[bytes]:
    yield to_json(entries, datetime.now(UTC))


def _left_behind(store: Store, sessions: list[str]) -> int:
    infos = [info for info in store.sessions() if info.session_id in sessions]
    return sum(info.counts[name] for info in infos for name in UNMASKABLE)


def _put(file: str, pieces: Iterable[bytes]) -> None:
    if file != STDIO:
        write_export(Path(file), pieces)
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _get(file: str) -> bytes:
    if file == STDIO:
        return sys.stdin.buffer.read()
    with os_errors(Path(file), "read"):
        return Path(file).read_bytes()


def _warn(text: str) -> None:
    click.echo(f"{paint('warning:', 'yellow')} {text}", err=True)
