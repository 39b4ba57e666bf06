"""`ctxgc sessions`: the sessions of coding agents and of ctxgc on this machine, newest first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path

import click
import msgspec

from ctxgc.cli.output import (
    FOUND_PROBLEMS,
    age,
    output_options,
    printable,
    short_id,
    size_text,
    write_json,
    write_table,
)
from ctxgc.cli.session_argument import is_inside
from ctxgc.cli.stores import command_store
from ctxgc.config import SessionSettings
from ctxgc.drawing import Column, Entry, count, dollars_text
from ctxgc.errors import CtxgcError
from ctxgc.insight import (
    LocalSession,
    find_sessions,
    prices_in_use,
    project_of,
    session_overview,
)
from ctxgc.session import default_url, mask_secrets

_EPILOG = """\b
Examples:
  ctxgc sessions                     the newest twenty
  ctxgc sessions --project .         those that worked in this folder or below
  ctxgc sessions --json --limit 1    the newest, for programs
  ctxgc analyze 5f8c                 a closer look at one of them

Exit codes: 0 found some, 1 found none, 2 usage error.
"""


@click.command(short_help="List the sessions of coding agents on this machine.", epilog=_EPILOG)
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Maximum number."
)
@click.option(
    "--project", metavar="FOLDER", help="Only sessions that worked in this folder or below."
)
@output_options
@click.pass_context
def sessions(
    ctx: click.Context, /, *, limit: int, project: str | None, as_json: bool, quiet: bool
) -> None:
    """List sessions of Claude Code, Codex and ctxgc, newest first.

    They are searched for in CLAUDE_CONFIG_DIR or ~/.claude, in CODEX_HOME or ~/.codex, and in the
    configured store. Tokens are those in the window now; `left` is how many turns more it holds at the
    rate of those in it. The cost is that of list prices, subagents included (see `ctxgc cost`).
    """
    folder = None if project is None else Path(project).expanduser().resolve()
    found = list(islice(_found(folder), limit))
    if as_json:
        write_json(msgspec.to_builtins(found))
    elif not quiet:
        write_table(_COLUMNS, [_row(session) for session in found])
        if not found:
            click.echo("no sessions found here (next: ctxgc analyze FILE)", err=True)
    ctx.exit(0 if found else FOUND_PROBLEMS)


def _found(folder: Path | None) -> Iterator[LocalSession]:
    """Yield sessions, newest first; files are only opened as far as sessions are consumed."""
    stored = sorted(_stored() if folder is None else [], key=_when, reverse=True)
    table = prices_in_use()
    for file in find_sessions():
        while stored and stored[0].updated_at > file.updated_at:
            yield stored.pop(0)
        if folder is None or is_inside(project_of(file), folder):
            yield session_overview(file, table)
    yield from stored


def _when(session: LocalSession) -> datetime:
    return session.updated_at


def _stored() -> list[LocalSession]:
    """Return the sessions of the library in the configured store, or in this folder; none without a store."""
    address = SessionSettings.from_env().store or default_url()
    try:
        with command_store(address) as store:
            infos = store.sessions()
    except CtxgcError:
        return []
    return [
        LocalSession(
            agent="ctxgc",
            session_id=info.session_id,
            path=address,
            size=info.counts["segments"],
            updated_at=info.updated_at,
        )
        for info in infos
    ]


_DATED = re.compile(r"-\d{8}$")
_COLUMNS = (
    "session",
    Column("title", least=16),
    Column("agent", rank=4),
    Column("project", least=12, keep="end", rank=3),
    Column("model", least=8),
    "age",
    Column("size", rank=7),
    Column("turns", rank=5),
    Column("subagents", rank=6),
    "cost",
    Column("tokens", rank=1),
    "zone",
    Column("left", right=True),
)


def _row(session: LocalSession) -> list[Entry]:
    project = session.project or ("-" if session.agent != "ctxgc" else session.path)
    percent = "" if session.percent is None else f" {session.percent:.0f}%"
    return [
        printable(short_id(session.session_id)),
        printable(mask_secrets(session.title or "-")),
        session.agent,
        printable(project),
        printable(_DATED.sub("", (session.model or "-").removeprefix("claude-"))),
        age(session.updated_at),
        f"{session.size:,} seg" if session.agent == "ctxgc" else size_text(session.size),
        f"{session.turns:,}" if session.requests else "-",
        f"{session.subagents:,}" if session.subagents else "-",
        "-" if session.dollars is None else dollars_text(session.dollars),
        "-" if session.tokens is None else f"{session.tokens:,}",
        (f"{session.zone or '-'}{percent}", session.zone or ""),
        "-" if session.turns_left is None else count(session.turns_left, "turn"),
    ]
