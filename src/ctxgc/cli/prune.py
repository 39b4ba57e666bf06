"""`ctxgc prune` and `ctxgc undo`: the garbage of an agent's session file, shown, removed and restored."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from ctxgc.agents import (
    BACKUP_FOLDER,
    Backup,
    FileState,
    backups_of,
    check_still,
    newest_backup,
    restore_backup,
    write_in_place,
)
from ctxgc.cli.agent_reader import AgentReader, reader_of
from ctxgc.cli.output import (
    FOUND_PROBLEMS,
    age,
    output_options,
    printable,
    secrets_option,
    usage_errors,
    warn,
    write_command,
    write_json,
    write_lines,
    write_ok,
    write_table,
    write_text,
)
from ctxgc.cli.session_argument import find_session, session_argument
from ctxgc.cli.stores import agents_address, command_store, store_option
from ctxgc.config import GCConfig, SessionSettings, load_config
from ctxgc.drawing import Column, count, shortened, terminal_bars, terminal_width
from ctxgc.errors import InputError, StoreError
from ctxgc.files import write_atomic
from ctxgc.insight import (
    PRESETS,
    Proposal,
    ProposalRow,
    PruneTarget,
    Writable,
    open_writable,
    propose_pruning,
    pruned_transcript,
    resume_command,
    session_folders,
    stored_session_id,
    window_limit,
)
from ctxgc.session import (
    Store,
    copy_in_memory,
    load_gc_plugin,
    open_store,
)

_AGENTS = {"claude_code": "claude-code", "codex": "codex"}
_TIGHT_MESSAGES = 4
DEFAULT_PRESET = "balanced"
_EPILOG = """\b
Examples:
  ctxgc prune latest                          what would leave, and why
  ctxgc prune latest --preset tight           down to a quarter of it
  ctxgc prune latest --target 80k -o pruned/  a copy for the agent to resume
  ctxgc prune 5f8cbb78 --in-place             the file itself (ctxgc undo)

Exit codes: 0 done, 1 an error, or the --target was missed, 2 usage error.
"""


@click.command(short_help="Collect the garbage of an agent's session file.", epilog=_EPILOG)
@session_argument
@click.option(
    "--target", metavar="TOKENS", help="Size to reach: 80k, 120000, or 50% of the window."
)
@click.option(
    "--preset", type=click.Choice(list(PRESETS)), default=DEFAULT_PRESET, show_default=True,
    help="Keep about 75%, 50% or 25%; tight also protects fewer recent messages.",
)  # fmt: skip
@click.option("--strategy", metavar="NAME", help="Strategy; by default the configured one.")
@click.option(
    "--context-limit",
    type=click.IntRange(min=1),
    help="The window in tokens; by default that of the model.",
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write the pruned session here; a folder ends in /."
)
@click.option("--in-place", "replaces", is_flag=True, help="Change the file; the original is kept.")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option("--all", "show_all", is_flag=True, help="List every segment that leaves.")
@click.option(
    "--recall", metavar="TOOL",
    help="Tool that recalls a handle where the session is read; by default that of the agent's server.",
)  # fmt: skip
@store_option
@secrets_option
@output_options
@click.pass_context
def prune(
    ctx: click.Context,
    /,
    *,
    session: Path,
    as_json: bool,
    quiet: bool,
    show_all: bool,
    **chosen: Any,
) -> None:
    """Show what a collection would remove from SESSION; -o or --in-place removes it.

    SESSION is a file, the beginning of a session id, or `latest`. Whatever leaves is stashed first:
    `ctxgc search` and `ctxgc show` find it. What is evacuated leaves a tombstone in its place, with
    those of its lines that are still needed; what is stashed leaves whole. If the agent has the server
    of ctxgc (`ctxgc install`), the tombstone names the call with which the model gets it back; without
    one, no handles are named. The result is a session file of the same kind, checked before it is
    written, which its agent can resume.
    """
    chosen["store_url"] = agents_address(chosen["store_url"])
    output = Output(chosen["output"], replaces=chosen["replaces"], force=chosen["force"])
    with usage_errors():
        output.check(session)
        target = _target(chosen)
        if chosen["strategy"] is not None:
            load_gc_plugin(chosen["strategy"])
    # Refuse a file that its agent is writing before any work is done.
    seen = check_still(session) if output.replaces else None
    raw = session.read_bytes() if seen is not None else b""
    file = open_writable(session)
    reader = _reader_of(file, chosen["store_url"], chosen["recall"])
    proposal = _propose(file, session, target, chosen, reader, dry=not output.writes)
    place = None
    if output.writes and proposal.revision:
        new_id = None if output.replaces else output.new_id(file)
        data = pruned_transcript(file, proposal, new_id)
        place = (
            _in_place(session, raw, data, seen)
            if seen is not None
            else save(output, session, data, new_id)
        )
    if not quiet and proposal.rows and reader.warning:
        warn(reader.warning)
    if as_json:
        write_json(
            {**_as_data(proposal, place), "recall": reader.tool}, secrets=chosen["show_secrets"]
        )
    elif not quiet:
        _write_proposal(proposal, place, reader, show_all=show_all, wanted=output.writes)
    # A preset is only a direction; a named target can be missed.
    ctx.exit(FOUND_PROBLEMS if proposal.shortfall and chosen["target"] is not None else 0)


def _target(chosen: dict[str, Any]) -> PruneTarget:
    named = chosen["target"]
    return PruneTarget.preset(chosen["preset"]) if named is None else PruneTarget.parse(named)


def preview_pruning(session: Path, context_limit: int | None = None) -> Proposal:
    """Return what `ctxgc prune SESSION` shows.

    Raises:
        CtxgcError: the session cannot be pruned.
    """
    file, url = open_writable(session), agents_address(None)
    chosen = {
        "store_url": url, "preset": DEFAULT_PRESET, "strategy": None, "context_limit": context_limit,
    }  # fmt: skip
    target = PruneTarget.preset(DEFAULT_PRESET)
    return _propose(file, session, target, chosen, _reader_of(file, url, None), dry=True)


def _reader_of(file: Writable, url: str, named: str | None) -> AgentReader:
    """Return who will read the pruned session: the tool that was named, or its agent."""
    agent = _AGENTS.get(file.kind)
    return AgentReader(named) if named is not None or agent is None else reader_of(agent, url)


def _propose(
    file: Writable,
    path: Path,
    target: PruneTarget,
    chosen: dict[str, Any],
    reader: AgentReader,
    *,
    dry: bool,
) -> Proposal:
    limit = chosen["context_limit"] or SessionSettings.from_env().context_limit or _limit(file)
    name = stored_session_id(file, path)
    with _stash_for(chosen["store_url"], name, dry=dry) as store:
        return propose_pruning(
            file,
            store,
            name,
            target=target,
            context_limit=limit,
            plugin=chosen["strategy"],
            config=_config(chosen["preset"]),
            recall_call=reader.call,
        )


def _limit(file: Writable) -> int:
    """Return the window of the session's model, as `ctxgc analyze` takes it to be."""
    return window_limit(file.facts, file.window)


def _config(preset: str) -> GCConfig:
    """Return the configuration; the tight preset protects fewer of the newest messages."""
    config = load_config()
    if preset != "tight":
        return config
    return config.replace(recent_messages=min(_TIGHT_MESSAGES, config.recent_messages))


def _as_data(proposal: Proposal, place: dict[str, Any] | None) -> dict[str, Any]:
    names = (
        "kind", "session_id", "messages", "left_alone", "tokens_before", "tokens_after", "beside",
        "target", "shortfall", "strategy", "requests_to_pay_back",
    )  # fmt: skip
    rows = [{name: getattr(row, name) for name in row.__struct_fields__} for row in proposal.rows]
    found = {name: getattr(proposal, name) for name in names}
    if place is None:  # handles are made when something is stashed
        rows = [{**row, "handle": None} for row in rows]
    return {**found, "written": place, "segments": rows}


# -- Output: the plan as a table, the pruned file, and the next step


SHOWN_ROWS = 20
_LONGEST_REASON, _LONGEST_WORD = 84, 28
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


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
        """Refuse contradictory options before any work is done.

        Raises:
            InputError: the options contradict each other, or name the session itself.
            StoreError: the file already exists.
        """
        if self._file is not None and self.replaces:
            raise InputError("-o and --in-place exclude each other", hint="give one of them")
        if self._file is None or self._is_folder:
            return
        path = Path(self._file)
        if path.exists() and path.samefile(source):
            raise InputError("-o names the session itself", hint="use --in-place", field="output")
        if path.exists() and not self._force:
            raise StoreError(f"{path} already exists", hint="add --force, or name another file")

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


def _in_place(source: Path, raw: bytes, data: bytes, seen: FileState) -> dict[str, Any]:
    """Change the session file itself, its original kept, and return where that is.

    Raises:
        TranscriptBusyError: its agent wrote to it meanwhile; nothing was changed.
        StoreError: it cannot be written.
    """
    backup = write_in_place(source, raw, data, seen)
    place = {"file": str(source), "session_id": None, "bytes": len(data)}
    return {**place, "backup": str(backup.original), "beside": True}


def _write_proposal(
    proposal: Proposal,
    place: dict[str, Any] | None,
    reader: AgentReader,
    *,
    show_all: bool,
    wanted: bool,
) -> None:
    """Write the plan as a table, its totals, and what to do next."""
    if proposal.left_alone:
        said = count(proposal.left_alone, "message")
        warn(f"{said} not valid, left unchanged (ctxgc doctor shows them)")
    rows = proposal.rows if show_all else proposal.rows[:SHOWN_ROWS]
    if rows:
        # Handles are made when something is stashed; those of a dry run would not last.
        names = (
            "tokens",
            "action",
            *(("handle",) if place else ()),
            Column("what", least=16, keep="ends"),
            Column("why", least=20, keep="all"),
        )
        texts = partial(_in_project, project=proposal.project)
        write_table(names, [_cells(row, texts, with_handle=place is not None) for row in rows])
    if len(rows) < len(proposal.rows):
        rest = proposal.rows[len(rows) :]
        tokens = sum(row.tokens for row in rest)
        click.echo(f"  … and {len(rest):,} more, {tokens:,} tokens (--all lists them)")
    _write_totals(proposal)
    if proposal.rows and reader.advice:
        write_text(reader.advice)
    _write_next(proposal, place, wanted=wanted)


def _cells(row: ProposalRow, texts: Callable[[str], str], *, with_handle: bool) -> tuple[str, ...]:
    what = shortened(texts(row.what), 60, keep="ends")
    handle = (row.handle,) if with_handle else ()
    return (f"{row.tokens:,}", row.action, *handle, what, _reason(texts(row.why)))


def _reason(why: str) -> str:
    """Return why a segment leaves with its paths and calls cut, and in full how old it is."""
    said, comma, old = why.rpartition(", ") if why.endswith(" old") else (why, "", "")
    words = (shortened(word, _LONGEST_WORD, keep="ends") for word in said.split())
    return f"{shortened(' '.join(words), _LONGEST_REASON)}{comma}{old}"


def _in_project(text: str, project: str | None) -> str:
    """Return a text as a terminal may show it, with the paths of the project as they are in it."""
    safe = printable(text)
    return re.sub(rf"(?<![\w./~-]){re.escape(project)}/", "", safe) if project else safe


def _write_totals(proposal: Proposal) -> None:
    before, after = proposal.tokens_before, proposal.tokens_after
    beside = f", {proposal.beside:,} of them not in the transcript" if proposal.beside else ""
    notes = [
        ("before", float(before), f"{before:,}", f"tokens{beside}"),
        ("after", float(after), f"{after:,}", f"tokens, {proposal.percent_less:.0f}% less"),
    ]
    write_lines(terminal_bars(notes, terminal_width()))
    short = proposal.shortfall
    verdict = f"missed by {short:,}: {proposal.strategy} keeps the rest" if short else "met"
    pays = proposal.requests_to_pay_back
    worth = f", pays for itself after {pays:g} requests" if pays else ""
    leaving = count(len(proposal.rows), "segment")
    write_text(f"{leaving} of {count(proposal.messages, 'message')}, by {proposal.strategy}{worth}")
    write_text(f"target {proposal.target:,}: {verdict}", "warning" if short else "")


def _write_next(proposal: Proposal, place: dict[str, Any] | None, *, wanted: bool) -> None:
    if place is None:
        dry = "dry run, nothing was written: -o FILE writes a pruned copy, --in-place changes the session"
        said = "nothing to write: no segment leaves" if wanted or not proposal.rows else dry
        write_text(said, indent="")
        return
    write_ok(f"wrote {place['file']}")
    write_text(f"stashed as session {proposal.session_id}: ctxgc search WORDS, ctxgc show HANDLE")
    if place["backup"] is not None:
        write_text(f"original: {place['backup']}, restored by")
        write_command(f"ctxgc undo {place['file']}")
    elif command := resume_command(
        proposal.kind, Path(place["file"]), place["session_id"], proposal.project
    ):
        write_text("to resume the copy:")
        write_command(command)


def _packed(path: Path, data: bytes) -> bytes:
    return gzip.compress(data, mtime=0) if path.suffix == ".gz" else data


# -- The store: the real one, or a copy in memory for a dry run


@contextmanager
def _stash_for(url: str, session_id: str, *, dry: bool) -> Iterator[Store]:
    """Open the store to stash into; for a dry run, a copy of the session in memory.

    Raises:
        StoreError: the store cannot be opened or created.
    """
    if not dry:
        with command_store(url, new=True) as store:
            yield store
        return
    yield _trial_store(url, session_id)


def _trial_store(url: str, session_id: str) -> Store:
    try:
        with command_store(url) as store:
            if store.revision(session_id):
                return copy_in_memory(store, session_id)
    except StoreError as error:
        # There is no store yet, so it has nothing of the session.
        if "path" not in error.details or "errno" in error.details:
            raise
    return open_store("memory:")


# -- undo


_UNDO_EPILOG = """\b
Examples:
  ctxgc undo                 the last change, here or to an agent's session
  ctxgc undo latest          of the newest session
  ctxgc undo session.jsonl   of this file

Exit codes: 0 restored, 1 an error or nothing to undo, 2 usage error.
"""


@click.command(short_help="Restore a session file that ctxgc changed.", epilog=_UNDO_EPILOG)
@click.argument("session", required=False)
@output_options
def undo(session: str | None, as_json: bool, quiet: bool) -> None:
    """Restore SESSION to what it was before `ctxgc prune --in-place` or `ctxgc unbrick`, byte for byte.

    What the agent added to the file since is kept at its end. A file that was changed in any other
    way, or that is being written, is not touched.
    """
    backup = _newest(session)
    added = restore_backup(backup)
    if as_json:
        write_json(
            {"file": str(backup.target), "pruned_at": backup.made_at, "bytes_added_since": added}
        )
    elif not quiet:
        since = f"; kept {added:,} bytes added since" if added else ""
        write_ok(
            f"restored {backup.target} to its state before the last change ({age(backup.made_at)} ago){since}"
        )


def _newest(session: str | None) -> Backup:
    if session is None:
        kept = (place for root in session_folders() for place in root.glob(f"**/{BACKUP_FOLDER}"))
        found = newest_backup([Path(), *(place.parent.parent for place in kept)])
    else:
        found = next(reversed(backups_of(find_session(session, only_here=True))), None)
    if found is None:
        raise InputError(
            "there is nothing to undo" + ("" if session is None else f" for {session}"),
            hint="prune --in-place and unbrick can be undone; -o never touches the original",
            field="session",
        )
    return found
