"""`ctxgc stash gc`, `export`, `import` and `migrate`: the stash collected, and sessions copied elsewhere."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from ctxgc.cli.output import output_options, preview, warn, write_json, write_ok, write_table
from ctxgc.cli.stores import command_store, session_option, store_option, tell_progress
from ctxgc.config import load_config
from ctxgc.drawing import Column, count
from ctxgc.errors import InputError, StoreError
from ctxgc.files import os_errors
from ctxgc.session import (
    UNMASKABLE,
    ContextSegment,
    ExportEntry,
    Store,
    chosen_sessions,
    copy_in_memory,
    export_entries,
    export_json,
    export_lines,
    import_entries,
    migrate_sessions,
    open_stored,
    read_export,
    utc_now,
    write_export,
)

# -- gc


_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000}


class _Quantity(click.ParamType[float]):
    """A number with a unit; its value is in the smallest unit."""

    def __init__(self, name: str, units: dict[str, int]) -> None:
        self.name = name
        self._units = units

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the value of a text such as `30d`."""
        match = _AMOUNT.fullmatch(str(value).strip())
        if match is None or match[2].lower() not in self._units:
            units = ", ".join(filter(None, self._units))
            self.fail(f"{value!r} is not a number with one of: {units}", param, ctx)
        return float(match[1]) * self._units[match[2].lower()]


@click.command(short_help="Collect the stash by age and size; a dry run by default.")
@store_option
@session_option
@click.option(
    "--older-than",
    type=_Quantity("age", _SECONDS),
    help="Last used longer ago than this: 30d, 12h.",
)
@click.option(
    "--max-size",
    type=_Quantity("size", _BYTES),
    help="Size limit per session; the oldest go first: 50MB.",
)
@click.option("--apply", is_flag=True, help="Delete it. Without this nothing changes.")
@output_options
def gc(
    *,
    store_url: str | None,
    session: str | None,
    older_than: float | None,
    max_size: float | None,
    apply: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show the stashed segments that are too old or too many; --apply deletes them.

    What a tombstone in a view names, what working segments refer to, and pins stay. Limits that are
    not given here come from the configuration. Stop agents that work on a session first: their next
    commit would be refused.
    """
    limits = _limits(older_than, max_size)
    now = utc_now()  # the same for the trial and the real run
    with command_store(store_url) as store:
        sessions = chosen_sessions(store, None if session is None else [session])
        tell = tell_progress("gc", quiet=quiet)
        found: list[tuple[str, ContextSegment]] = []
        for done, session_id in enumerate(sessions, 1):
            garbage = _what_would_go(store, session_id, now, **limits)
            if apply and garbage:
                collect(store, session_id, now, **limits)
            found += [(session_id, segment) for segment in garbage]
            tell(done, len(sessions))
    _write(found, applied=apply, as_json=as_json, quiet=quiet)


def _what_would_go(
    store: Store, session_id: str, now: datetime, **limits: Any
) -> list[ContextSegment]:
    """Return what `collect` would delete, as a trial on a copy in memory shows."""
    copy = copy_in_memory(store, session_id)
    known = {
        segment.segment_id: segment for segment in open_stored(copy, session_id, now).segments()
    }
    # Tried on another one: what was deleted cannot be shown.
    trial = copy_in_memory(copy, session_id)
    return [known[segment_id] for segment_id in collect(trial, session_id, now, **limits)]


def collect(store: Store, session_id: str, now: datetime, **limits: Any) -> list[str]:
    """Collect the stash of a session and return the ids of what is gone."""
    session = open_stored(store, session_id, now)
    gone = session.collect_stash(**limits)
    session.flush()
    return gone


def _limits(older_than: float | None, max_size: float | None) -> dict[str, Any]:
    config = load_config()
    age = config.stash_max_age_seconds if older_than is None else older_than
    size = config.stash_max_bytes if max_size is None else int(max_size)
    if age is None and size is None:
        raise InputError(
            "there is no age limit and no size limit",
            hint="give --older-than or --max-size",
            field="older_than",
        )
    return {"max_age_seconds": age, "max_bytes": size}


def _write(
    found: list[tuple[str, ContextSegment]], *, applied: bool, as_json: bool, quiet: bool
) -> None:
    tokens = sum(segment.tokens or 0 for _, segment in found)
    if as_json:
        rows = [
            {"session": name, "segment_id": s.segment_id, "tokens": s.tokens} for name, s in found
        ]
        write_json({"applied": applied, "tokens": tokens, "segments": rows})
    elif not quiet:
        columns = (
            Column("session", least=8),
            "segment",
            "type",
            "tokens",
            Column("line", least=20),
        )
        cells = [
            (name, s.segment_id, s.type, f"{s.tokens or 0:,}", preview(s.text)) for name, s in found
        ]
        write_table(columns, cells)
        said = "deleted" if applied else "would be deleted; --apply does it"
        write_ok(f"{count(len(found), 'segment')}, {count(tokens, 'token')} {said}")


# -- export, import, migrate


_STDIO = "-"


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
    help="Mask likely keys; checkpoints cannot be masked and are left out.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
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

    A file that was cut or changed is noticed when it is read. The store does not change.
    """
    path = Path(file)
    if file != _STDIO and path.exists() and not force:
        raise StoreError(f"{path} already exists", hint="add --force, or name another file")
    with command_store(store_url) as store:
        sessions = chosen_sessions(store, None if session is None else [session])
        left = _left_behind(store, sessions) if mask else 0
        counted = _Counted(export_entries(store, sessions, mask=mask))
        pieces = export_lines(counted, masked=mask) if form == "lines" else _json(counted)
        _put(file, pieces)
    if left:
        warn(f"{count(left, 'checkpoint')} left out: not maskable (--no-mask includes them)")
    done = {"file": file, "sessions": len(sessions), "documents": counted.count, "masked": mask}
    if file == _STDIO or quiet:
        return
    if as_json:
        write_json({**done, "checkpoints_left": left})
    else:
        said = f"{count(len(sessions), 'session')}, {count(counted.count, 'document')} in {file}"
        write_ok(said)


@click.command("import", short_help="Import the sessions of a file into a store.")
@click.argument("file", metavar="FILE")
@store_option
@session_option
@click.option("--into", metavar="ID", help="Name of the session in the store.")
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
    """Import the sessions of FILE into a store; `-` is standard input. Importing twice changes nothing.

    New sessions are imported whole. A session that the store already has gets the segments that it
    lacks, stashed. If an id has another text in the store, nothing is imported.
    """
    export_ = read_export(Path(file), _get(file), utc_now())
    entries = [entry for entry in export_.entries if session in (None, entry.session_id)]
    if session is not None and not entries:
        raise InputError(f"{file} has no session {session!r}", hint="leave --session out")
    with command_store(store_url, new=True) as store:
        progress = tell_progress("import", quiet=quiet)
        done = import_entries(store, entries, into=into, progress=progress)
    if as_json:
        write_json({**msgspec.to_builtins(done), "masked": export_.masked})
    elif not quiet:
        counts = f"{count(done.added, 'document')} added, {done.present} present, {done.kept} kept"
        write_ok(f"{count(len(done.sessions), 'session')}: {counts}")


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

    FROM is not changed. After an interruption run it again: what is already in TO is not copied
    twice. Stop the agents that work on the sessions first; their writes are noticed.
    """
    with command_store(source_url) as source, command_store(target_url, new=True) as target:
        if source.url == target.url:
            raise InputError(
                "FROM and TO are the same store", hint="name two different stores", field="TO"
            )
        progress = tell_progress("migrate", quiet=quiet)
        chosen = None if session is None else [session]
        done = migrate_sessions(source, target, chosen, replace=replace, progress=progress)
    if as_json:
        write_json(msgspec.to_builtins(done))
    elif not quiet:
        said = f"{count(len(done.copied), 'session')} copied, {len(done.present)} present, all verified"
        write_ok(f"{said} ({count(sum(done.copied.values()), 'document')})")


class _Counted:
    """Counts entries as they are consumed."""

    def __init__(self, entries: Iterable[ExportEntry]) -> None:
        self._entries = iter(entries)
        self.count = 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> ExportEntry:
        entry = next(self._entries)
        self.count += 1
        return entry


def _json(entries: Iterable[ExportEntry]) -> Iterable[bytes]:
    yield export_json(entries, utc_now())


def _left_behind(store: Store, sessions: list[str]) -> int:
    infos = [info for info in store.sessions() if info.session_id in sessions]
    return sum(info.counts[name] for info in infos for name in UNMASKABLE)


def _put(file: str, pieces: Iterable[bytes]) -> None:
    if file != _STDIO:
        write_export(Path(file), pieces)
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _get(file: str) -> bytes:
    if file == _STDIO:
        return sys.stdin.buffer.read()
    with os_errors(Path(file), "read"):
        return Path(file).read_bytes()
