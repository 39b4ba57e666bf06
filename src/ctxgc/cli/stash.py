"""`ctxgc stash list`, `search` and `show`, and the group of all stash commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, get_args

import click

from ctxgc.cli.output import (
    FOUND_PROBLEMS,
    age,
    highlighted,
    output_options,
    preview,
    printable,
    write_json,
    write_table,
)
from ctxgc.cli.stash_admin import export, gc, import_, migrate
from ctxgc.cli.stores import (
    LINES_HELP,
    command_store,
    command_stores,
    find_in_stores,
    line_range,
    segment_row,
    session_option,
    store_option,
    stores_with,
)
from ctxgc.drawing import Column, Entry
from ctxgc.session import (
    SearchFilters,
    SegmentType,
    SessionInfo,
    StoreHit,
    chosen_sessions,
    excerpt,
)

_TIERS = ("stashed", "working")
_TIME = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"])


@click.command("list", short_help="List sessions, or the segments of one.")
@store_option
@session_option
@click.option("--tier", type=click.Choice(_TIERS), help="Only segments of this tier.")
@output_options
def list_(
    store_url: str | None, session: str | None, tier: str | None, as_json: bool, quiet: bool
) -> None:
    """List the sessions of a store or, with --session, its segments: stashed ones first.

    Each with its handle, type, tokens, age and first line; likely keys are masked.
    """
    with command_store(store_url) as store:
        if session is None:
            _show_sessions(store.sessions(), as_json=as_json, quiet=quiet)
            return
        chosen_sessions(store, [session])
        rows = sorted(store.load(session, "segments"), key=lambda row: _tier_order(row[1]))
    found = [segment_row(session, key, doc) for key, doc in rows if tier in (None, doc.get("tier"))]
    _write(found, ["tier", "handle", "type", "tokens", "age", "line"], as_json, quiet)


_SEARCH_EPILOG = """\b
Examples:
  ctxgc search tokenizer newline
  ctxgc search "exit code 1" --type log --after 2026-01-01
  ctxgc search parser --session work --tier stashed --json
"""


@click.command(short_help="Search segments by their text.", epilog=_SEARCH_EPILOG)
@click.argument("query", nargs=-1, required=True)
@store_option
@session_option
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--type", "type_", type=click.Choice(get_args(SegmentType)))
@click.option(
    "--tag",
    "tags",
    metavar="TAG",
    multiple=True,
    help="With this tag; may be repeated.",
)
@click.option("--file", "file_path", metavar="PATH", help="Segments about this file.")
@click.option("--task", "task_id", metavar="ID", help="Segments of this task.")
@click.option("--tier", type=click.Choice(_TIERS))
@click.option(
    "--after", "created_after", type=_TIME, metavar="TIME", help="Created then or later (UTC)."
)
@click.option(
    "--before",
    "created_before",
    type=_TIME,
    metavar="TIME",
    help="Created then or earlier (UTC).",
)
@output_options
@click.pass_context
def search(
    ctx: click.Context,
    /,
    *,
    query: tuple[str, ...],
    store_url: str | None,
    session: str | None,
    limit: int,
    as_json: bool,
    quiet: bool,
    type_: str | None,
    **filters: Any,
) -> None:
    """Find the segments that match the words of QUERY best, ranked by BM25.

    Exit codes: 0 found something, 1 found nothing.
    """
    wanted = SearchFilters(type=type_, **{name: _aware(value) for name, value in filters.items()})
    with command_stores(store_url) as stores:
        hits = [
            hit
            for store in stores_with(stores, session)
            for hit in store.search(
                " ".join(query), session_id=session, filters=wanted, limit=limit
            )
        ]
    hits = sorted(hits, key=lambda hit: -hit.score)[:limit]
    found = [_hit(hit, query) for hit in hits]
    columns = ["score", "session", "handle", "type", "tokens", "age", "line"]
    _write(found, columns, as_json, quiet, query)
    if not (found or as_json or quiet):
        click.echo(f"nothing found for {' '.join(query)!r}", err=True)
    ctx.exit(0 if found else FOUND_PROBLEMS)


@click.command(short_help="Show the text of one segment.")
@click.argument("handle")
@store_option
@session_option
@click.option("--lines", metavar="FIRST-LAST", help=LINES_HELP)
@click.option("--pattern", metavar="TEXT", help="Only lines with this text, with two around each.")
@output_options
def show(
    *,
    handle: str,
    store_url: str | None,
    session: str | None,
    lines: str | None,
    pattern: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show the whole text of the segment with HANDLE; an id or a name works too.

    Secrets in it are not masked, since you asked for this text.
    """
    with command_stores(store_url) as stores:
        _, where, key, doc = find_in_stores(stores, handle, session)
    text = excerpt(str(doc.get("text", "")), lines=line_range(lines), pattern=pattern)
    if as_json:
        write_json({**segment_row(where, key, doc), "text": text}, secrets=True)
    elif not quiet:
        tty = sys.stdout.isatty()
        click.echo(printable(text) if tty else text.encode("utf-8", "surrogatepass"))


def _show_sessions(infos: list[SessionInfo], *, as_json: bool, quiet: bool) -> None:
    rows = [
        {
            "session": info.session_id,
            "segments": info.counts["segments"],
            "messages": info.counts["messages"],
            "checkpoints": info.counts["checkpoints"],
            "revision": info.revision,
            "age": age(info.updated_at),
            "updated_at": info.updated_at.isoformat(),
        }
        for info in infos
    ]
    _write(
        rows, ["session", "segments", "messages", "checkpoints", "revision", "age"], as_json, quiet
    )


def _hit(hit: StoreHit, words: Sequence[str]) -> dict[str, Any]:
    found = segment_row(hit.session_id, hit.key, hit.doc)
    line = preview(str(hit.doc.get("text", "")), words)
    return {"score": round(hit.score, 3), **found, "line": line}


def _write(
    found: list[dict[str, Any]],
    columns: list[str],
    as_json: bool,
    quiet: bool,
    words: Sequence[str] = (),
) -> None:
    if as_json:
        write_json(found)
    elif not quiet:
        shown = [_COLUMNS.get(name, Column(name)) for name in columns]
        rows = [[_cell(name, each.get(name), words) for name in columns] for each in found]
        write_table(shown, rows)


_COLUMNS = {
    "session": Column("session", least=8),
    "line": Column("line", least=20),
    "revision": Column("revision", rank=1),
    "score": Column("score", rank=2),
}


def _cell(name: str, value: object, words: Sequence[str]) -> Entry:
    if value is None:
        return "-"
    if isinstance(value, int | float):
        return f"{value:,}"
    shown = printable(str(value))
    return highlighted(shown, words) if name == "line" else shown


def _tier_order(doc: dict[str, Any]) -> int:
    return _TIERS.index(doc["tier"]) if doc.get("tier") in _TIERS else len(_TIERS)


def _aware(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value


@click.group()
def stash() -> None:
    """Inspect stores, copy sessions from one to another, and collect the stash.

    The store is the one of --store, else of CTXGC_STORE, else the user's, where the sessions of coding
    agents are; before there is one, that of the library in this folder. `search` and `show` look into
    both.
    Errors end with exit code 1 and one line that says what to do next.
    """


for command in (list_, search, show, export, import_, migrate, gc):
    stash.add_command(command)
