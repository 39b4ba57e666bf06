"""What pruning writes: the plan as a table, the pruned file, and how to go on with it."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from ctxgc.cli.report import done, paint, warn, write_lines, write_table
from ctxgc.cli.stash_store import count, printable
from ctxgc.drawing.terminal import bars, shortened
from ctxgc.errors import InputError, StoreError
from ctxgc.pruning import Proposal, Row, write_in_place
from ctxgc.pruning.stillness import Look
from ctxgc.stores.files import write_atomic
from ctxgc.wire.transcripts.writing import Writable

SHOWN_ROWS = 20
_WIDTH = 40
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_RESUME = {"claude_code": "claude --resume {}", "codex": "codex resume {}"}


class Output:
    """Where the pruned session goes: nowhere, into a file or a folder, or into its own place."""

    def __init__(self, file: str | None, *, replaces: bool, force: bool) -> None:
        self._file = file
        self.replaces = replaces
        self._force = force

    @property
    def writes(self) -> bool:
        """Whether anything is written at all."""
        return self._file is not None or self.replaces

    def check(self, source: Path) -> None:
        """Refuse what cannot be meant, before any work is done.

        Raises:
            InputError: the options contradict each other, or name the session itself.
            StoreError: the file is there already.
        """
        if self._file is not None and self.replaces:
            raise InputError("-o and --in-place exclude each other", hint="give one of them")
        if self._file is None or self._is_folder:
            return
        path = Path(self._file)
        if path.exists() and path.samefile(source):
            raise InputError("-o names the session itself", hint="use --in-place", field="output")
        if path.exists() and not self._force:
            raise StoreError(f"{path} is there already", hint="add --force, or name another file")

    def new_id(self, file: Writable) -> str | None:
        """Return the session id of the copy: the one in the file's name, else a new one."""
        if file.session_id is None:
            return None
        named = None if self._is_folder else _UUID.search(Path(str(self._file)).name)
        return named[0] if named is not None else str(uuid4())

    def path(self, source: Path, new_id: str | None) -> Path:
        """Return the file to write."""
        path = Path(str(self._file))
        if not self._is_folder:
            return path
        if new_id is None:
            return path / source.name
        # Codex finds a session by the id at the end of its file's name.
        name = _UUID.sub(new_id, source.name.removesuffix(".gz"))
        return path / (name if new_id in name else f"{new_id}.jsonl")

    @property
    def _is_folder(self) -> bool:
        named = self._file or ""
        return named.endswith("/") or (bool(named) and Path(named).is_dir())


def save(output: Output, source: Path, data: bytes, new_id: str | None) -> dict[str, Any]:
    """Write the copy, and return where it is.

    Raises:
        StoreError: it cannot be written.
    """
    path = output.path(source, new_id)
    write_atomic(path, _packed(path, data))
    place = {"file": str(path), "session_id": new_id, "bytes": len(data), "backup": None}
    return {**place, "beside": path.parent.samefile(source.parent)}


def in_place(source: Path, raw: bytes, data: bytes, seen: Look) -> dict[str, Any]:
    """Change the session file itself, its original kept, and return where that is.

    Raises:
        TranscriptBusyError: its agent wrote to it meanwhile; nothing was changed.
        StoreError: it cannot be written.
    """
    packed = gzip.compress(data, mtime=0) if raw[:2] == b"\x1f\x8b" else data
    backup = write_in_place(source, raw, packed, seen)
    place = {"file": str(source), "session_id": None, "bytes": len(data)}
    return {**place, "backup": str(backup.original), "beside": True}


def write_proposal(
    proposal: Proposal, place: dict[str, Any] | None, *, show_all: bool, wanted: bool
) -> None:
    """Write the plan as a table, its totals, and what to do next."""
    if proposal.left_alone:
        said = count(proposal.left_alone, "message")
        warn(f"{said} of no valid shape left as they are (ctxgc doctor shows them)")
    rows = proposal.rows if show_all else proposal.rows[:SHOWN_ROWS]
    if rows:
        # Handles are made when something is stashed; a dry run has none that would last.
        names = ("tokens", "action", *(("handle",) if place else ()), "what", "why")
        write_table([names, *(_cells(row, with_handle=place is not None) for row in rows)])
    if len(rows) < len(proposal.rows):
        rest = proposal.rows[len(rows) :]
        tokens = sum(row.tokens for row in rest)
        click.echo(f"  ... and {len(rest)} more, {tokens:,} tokens (--all lists them)")
    _write_totals(proposal)
    _write_next(proposal, place, wanted=wanted)


def _cells(row: Row, *, with_handle: bool) -> tuple[str, ...]:
    what = printable(shortened(row.what, 60))
    handle = (row.handle,) if with_handle else ()
    return (f"{row.tokens:,}", row.action, *handle, what, printable(row.why))


def _write_totals(proposal: Proposal) -> None:
    before, after = proposal.tokens_before, proposal.tokens_after
    share = 100 * (before - after) / before if before else 0.0
    beside = f", {proposal.beside:,} of them beside the messages" if proposal.beside else ""
    notes = [
        ("before", float(before), f"{before:,} tokens{beside}"),
        ("after", float(after), f"{after:,} tokens, {share:.0f}% less"),
    ]
    write_lines(bars(notes, _WIDTH))
    short = proposal.shortfall
    verdict = (
        paint(f"missed by {short:,}: {proposal.strategy} keeps the rest", "yellow")
        if short
        else "met"
    )
    pays = proposal.requests_to_pay_back
    worth = f", pays for itself after {pays:g} requests" if pays else ""
    leaving = count(len(proposal.rows), "segment")
    click.echo(
        f"  {leaving} of {count(proposal.messages, 'message')}, by {proposal.strategy}{worth}"
    )
    click.echo(f"  target {proposal.target:,}: {verdict}")


def _write_next(proposal: Proposal, place: dict[str, Any] | None, *, wanted: bool) -> None:
    if place is None:
        dry = "nothing was written: -o FILE writes a copy, --in-place changes the session"
        click.echo("nothing to write: no segment leaves" if wanted or not proposal.rows else dry)
        return
    done(f"wrote {place['file']}")
    click.echo(f"  stashed as session {proposal.session_id}: ctxgc search WORDS, ctxgc show HANDLE")
    if place["backup"] is not None:
        click.echo(f"  original: {place['backup']} (ctxgc undo {place['file']} puts it back)")
    elif proposal.kind in _RESUME:
        where = "" if place["beside"] else ", once it lies beside the other sessions"
        command = _RESUME[proposal.kind].format(place["session_id"])
        click.echo(f"  resume it{where}: {command}")


def _packed(path: Path, data: bytes) -> bytes:
    return gzip.compress(data, mtime=0) if path.suffix == ".gz" else data
