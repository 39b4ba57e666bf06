"""`ctxgc cost`: what sessions cost, by model, day, project, session, tool, MCP server and subagent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from ctxgc.cli.output import (
    FOUND_PROBLEMS,
    output_options,
    printable,
    short_id,
    usage_errors,
    warn,
    write_json,
    write_lines,
    write_table,
    write_text,
)
from ctxgc.cli.session_argument import find_session, is_inside
from ctxgc.drawing import Column, count, dollars_text, rule, terminal_width
from ctxgc.errors import InputError, TranscriptError
from ctxgc.insight import (
    COST_VIEWS,
    CostedRequest,
    CostReport,
    Spend,
    find_sessions,
    prices_in_use,
    session_requests,
    total_cost,
)

_EPILOG = """\b
Examples:
  ctxgc cost                         all sessions: by model, day and project
  ctxgc cost --by tool --since 2026-11-01
  ctxgc cost latest --by subagent    one session
  ctxgc cost --prices mine.json --json

Exit codes: 0 done, 1 nothing was found, or an error, 2 usage error.
"""
_DEFAULT_VIEWS = ("model", "day", "project")
_SHORT = 10
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAMES = {"server": "MCP server"}


@click.command(short_help="Sum up what sessions cost, in dollars.", epilog=_EPILOG)
@click.argument("sessions", metavar="[SESSION]...", nargs=-1)
@click.option("--by", "view", type=click.Choice(COST_VIEWS), help="One table, with all its rows.")
@click.option("--since", metavar="DAY", help="Only requests from this day on (2026-11-01).")
@click.option("--until", metavar="DAY", help="Only requests up to this day.")
@click.option("--project", metavar="FOLDER", help="Only sessions in this folder or below.")
@click.option("--prices", metavar="FILE", help="Prices of models that come before those that ship.")
@output_options
@click.pass_context
def cost(
    ctx: click.Context,
    /,
    *,
    sessions: tuple[str, ...],
    view: str | None,
    since: str | None,
    until: str | None,
    project: str | None,
    prices: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Sum up what SESSIONs cost, by default all of Claude Code and Codex, subagents included.

    The tokens are what the provider reported for each request; the price is its list price for the model and
    the day. A request that several files hold counts once. What a request cost is booked to the tools that
    its answer called, in equal shares. Days are those of your clock.
    """
    with usage_errors():
        first, last = _day(since, "since"), _day(until, "until")
    files = [find_session(each) for each in sessions] or _files()
    folder = None if project is None else Path(project).expanduser().resolve()
    found = (
        each
        for each in _requests(files, prices)
        if _is_wanted(each, first, last) and (folder is None or is_inside(each.project, folder))
    )
    report = total_cost(found)
    if as_json:
        write_json(msgspec.to_builtins(report))
    elif not quiet:
        _write(report, (view,) if view else _DEFAULT_VIEWS, whole=view is not None)
    ctx.exit(0 if report.total.requests else FOUND_PROBLEMS)


def _files() -> list[Path]:
    """Return all session files, oldest first: a request belongs to the session that made it."""
    return [found.path for found in reversed(find_sessions())]


def _requests(files: Iterable[Path], prices: str | None) -> Iterator[CostedRequest]:
    table, zone = prices_in_use(prices), datetime.now().astimezone().tzinfo or UTC
    for path in files:
        try:
            yield from session_requests(path, table, zone)
        except TranscriptError as error:
            warn(error.message)


def _day(text: str | None, name: str) -> str:
    if text is not None and _DAY.fullmatch(text) is None:
        raise InputError(f"--{name}: {text!r} is not a day", hint="write 2026-11-01", field=name)
    return text or ""


def _is_wanted(request: CostedRequest, first: str, last: str) -> bool:
    is_dated = _DAY.fullmatch(request.day) is not None
    return (not (first or last)) or (is_dated and first <= request.day <= (last or request.day))


def _write(report: CostReport, views: Iterable[str], *, whole: bool) -> None:
    total = report.total
    if not total.requests:
        click.echo("no requests with reported usage found (next: ctxgc sessions)", err=True)
        return
    for view in views:
        write_lines([rule(f"By {_NAMES.get(view, view)}", terminal_width())])
        _write_view(view, report.by[view], total, whole=whole)
    said = f"{count(total.requests, 'request')} in {count(report.sessions, 'session')}"
    again = f"; {report.repeated:,} more are copies in other files" if report.repeated else ""
    write_text(f"{said}, {dollars_text(total.dollars)}{again}")
    if total.unpriced:
        write_text(
            f"{count(total.unpriced, 'request')} not in the dollars: no price is known for the model"
            " (next: add one with --prices FILE)",
            "warning",
        )


def _write_view(view: str, rows: dict[str, Spend], total: Spend, *, whole: bool) -> None:
    columns = (
        Column(_NAMES.get(view, view), least=12, keep="end" if view == "project" else "start"),
        Column("requests", rank=1), Column("input", rank=3), Column("cache read", rank=5),
        Column("write 5m", rank=4), Column("write 1h", rank=6), Column("output", rank=2),
        Column("cost", right=True),
    )  # fmt: skip
    ranked = sorted(rows.items(), key=lambda row: (-row[1].dollars, -row[1].sent, row[0]))
    if view == "day":
        ranked = sorted(rows.items())
    left = [] if whole else (ranked[:-_SHORT] if view == "day" else ranked[_SHORT:])
    shown = ranked if whole else (ranked[-_SHORT:] if view == "day" else ranked[:_SHORT])
    cells = [_cells(_name(view, name), spend) for name, spend in shown]
    write_table(columns, [*cells, _cells("total", total)])
    if left:
        write_text(f"and {len(left):,} more (--by {view} lists them)", "faint")


def _name(view: str, name: str) -> str:
    return printable(short_id(name) if view == "session" else name)


def _cells(name: str, spend: Spend) -> tuple[str, ...]:
    counts = (
        spend.requests, spend.uncached, spend.cache_read, spend.cache_write_5m,
        spend.cache_write_1h, spend.output,
    )  # fmt: skip
    is_known = spend.requests > spend.unpriced or spend.dollars
    return (
        name,
        *(f"{each:,}" for each in counts),
        dollars_text(spend.dollars) if is_known else "-",
    )
