"""`ctxgc stash list`, `search` and `show`: looking into a store without changing it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from ctxgc.cli.report import FOUND_PROBLEMS, output_options, write_json, write_table
from ctxgc.cli.stash_store import (
    age,
    handle_of,
    opened,
    preview,
    printable,
    session_option,
    store_option,
)
from ctxgc.errors import InputError, UnknownHandleError
from ctxgc.session.stash import excerpt
from ctxgc.stores import SearchFilters, SessionInfo, Store, StoreHit
from ctxgc.stores.exchange import chosen_sessions

TIERS = ("stashed", "working")
_LINES = re.compile(r"(\d+)(?:-(\d+))?")
_TIME = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"])


@click.command("list", short_help="List sessions, or the segments of one.")
@store_option
@session_option
@click.option("--tier", type=click.Choice(TIERS), help="Only segments of this tier.")
@output_options
def list_(
    store_url: str | None, session: str | None, tier: str | None, as_json: bool, quiet: bool
) -> None:
    """List the sessions of a store or, with --session, its segments: stashed ones first.

    A segment has its handle, type, tokens, age and first line; likely keys are masked.
    """
    with opened(store_url) as store:
        if session is None:
            _show_sessions(store.sessions(), as_json=as_json, quiet=quiet)
            return
        chosen_sessions(store, [session])
        rows = sorted(store.load(session, "segments"), key=lambda row: _tier_order(row[1]))
    found = [_segment(session, key, doc) for key, doc in rows if tier in (None, doc.get("tier"))]
    _write(found, ["tier", "handle", "type", "tokens", "age", "line"], as_json, quiet)


@click.command(short_help="Find segments by what they say.")
@click.argument("query", nargs=-1, required=True)
@store_option
@session_option
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True)
@click.option(
    "--type", "type_", metavar="TYPE", help="message, code, log, note, decision, summary."
)
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="One of these tags.")
@click.option("--file", "file_path", metavar="PATH", help="Segments about this file.")
@click.option("--task", "task_id", metavar="ID", help="Segments of this task.")
@click.option("--tier", type=click.Choice(TIERS))
@click.option(
    "--after", "created_after", type=_TIME, metavar="TIME", help="Made then or later (UTC)."
)
@click.option(
    "--before",
    "created_before",
    type=_TIME,
    metavar="TIME",
    help="Made then or earlier (UTC).",
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

    Exit codes: 0 something was found, 1 nothing was.
    """
    wanted = SearchFilters(type=type_, **{name: _aware(value) for name, value in filters.items()})
    with opened(store_url) as store:
        if session is not None:
            chosen_sessions(store, [session])
        hits = store.search(" ".join(query), session_id=session, filters=wanted, limit=limit)
    found = [_hit(hit, query) for hit in hits]
    _write(found, ["score", "session", "handle", "type", "tokens", "age", "line"], as_json, quiet)
    ctx.exit(0 if found else FOUND_PROBLEMS)


@click.command(short_help="Show the text of one segment.")
@click.argument("handle")
@store_option
@session_option
@click.option("--lines", metavar="FIRST-LAST", help="Only these lines, counted from 1.")
@click.option("--pattern", metavar="TEXT", help="Only lines with this text, and two around each.")
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
    """Show the whole text of the segment that HANDLE names, as it was; an id or a name does too.

    Keys in it are not masked: you asked for this text.
    """
    with opened(store_url) as store:
        found = _find(store, handle, chosen_sessions(store, None if session is None else [session]))
    where, key, doc = found
    text = excerpt(str(doc.get("text", "")), lines=_range(lines), pattern=pattern)
    if as_json:
        write_json({**_segment(where, key, doc), "text": text})
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


def _segment(session_id: str, key: str, doc: dict[str, Any]) -> dict[str, Any]:
    names = ("type", "tier", "tokens", "created_at", "file_path", "tags")
    return {
        "session": session_id,
        "handle": handle_of(key, doc),
        "segment_id": key,
        **{name: doc.get(name) for name in names},
        "age": age(doc.get("created_at")),
        "line": preview(str(doc.get("text", ""))),
    }


def _hit(hit: StoreHit, words: Sequence[str]) -> dict[str, Any]:
    found = _segment(hit.session_id, hit.key, hit.doc)
    line = preview(str(hit.doc.get("text", "")), words)
    return {"score": round(hit.score, 3), **found, "line": line}


def _write(found: list[dict[str, Any]], columns: list[str], as_json: bool, quiet: bool) -> None:
    if as_json:
        write_json(found)
    elif not quiet:
        rows = [[_cell(each.get(name)) for name in columns] for each in found]
        write_table([columns, *rows] if rows else [])


def _cell(value: object) -> str:
    return "-" if value is None else printable(str(value))


def _tier_order(doc: dict[str, Any]) -> int:
    return TIERS.index(doc["tier"]) if doc.get("tier") in TIERS else len(TIERS)


def _find(store: Store, handle: str, sessions: list[str]) -> tuple[str, str, dict[str, Any]]:
    found = list(_answers(store, handle, sessions))
    if not found:
        raise UnknownHandleError(
            f"nothing answers to '{handle}'",
            hint="ctxgc stash search WORDS finds it by what it says",
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
            if handle in (doc.get("handle"), key, doc.get("name")):
                yield session_id, key, doc


def _range(lines: str | None) -> tuple[int, int] | None:
    if lines is None:
        return None
    match = _LINES.fullmatch(lines)
    if match is None:
        raise InputError(f"--lines cannot be {lines!r}", hint="for example 10-20", field="lines")
    return int(match[1]), int(match[2] or match[1])


def _aware(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value
