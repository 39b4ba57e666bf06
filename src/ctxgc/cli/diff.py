"""`ctxgc diff`: what left, came and changed between two histories."""

from __future__ import annotations

from typing import Any

import click

from ctxgc.cli.diff_sides import Side, Unit, read_side
from ctxgc.cli.report import (
    FOUND_PROBLEMS,
    output_options,
    styled,
    write_json,
    write_lines,
    write_table,
)
from ctxgc.cli.stash_store import preview, session_option, store_option
from ctxgc.drawing.terminal import bars

SHOWN_ROWS = 40
_WIDTH = 40
_STYLES = {"left": "critical", "came": "safe", "changed": "warning"}
_SIGNS = {"left": "-", "came": "+", "changed": "~"}
_EPILOG = """\b
Examples:
  ctxgc diff session.jsonl pruned.jsonl
  ctxgc diff checkpoint:20260302 session:work      since a checkpoint
  ctxgc diff collection:3 session:work --session work what collection 3 and later ones did

Exit codes: 0 they say the same, 1 they differ or an error, 2 a wrong call.
"""


@click.command(short_help="Show what left, came and changed.", epilog=_EPILOG)
@click.argument("a")
@click.argument("b")
@store_option
@session_option
@click.option("--all", "show_all", is_flag=True, help="List every difference.")
@output_options
@click.pass_context
def diff(
    ctx: click.Context,
    /,
    *,
    a: str,
    b: str,
    store_url: str | None,
    session: str | None,
    show_all: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare what the model sees in A with what it sees in B.

    Each is a transcript (a file, the beginning of a session id, or `latest`), or of a store:
    `session:NAME` (its view now), `checkpoint:ID`, or `collection:N` (the view right before it).
    """
    before, after = (read_side(name, store_url, session) for name in (a, b))
    rows = differences(before, after)
    if as_json:
        sides = {"a": _side_data(before), "b": _side_data(after)}
        write_json({**sides, "differences": rows})
    elif not quiet:
        _write(before, after, rows, show_all=show_all)
    ctx.exit(FOUND_PROBLEMS if rows else 0)


def differences(before: Side, after: Side) -> list[dict[str, Any]]:
    """Return what is in one side only, or has another text in the other, in the order of A, then B."""
    known = {unit.key: unit for unit in after.units}
    rows = []
    for unit in before.units:
        other = known.pop(unit.key, None)
        if other is None:
            rows.append(_row("left", unit, unit.tokens, 0))
        elif other.text != unit.text:
            rows.append(_row("changed", other, unit.tokens, other.tokens))
    return [*rows, *(_row("came", unit, 0, unit.tokens) for unit in known.values())]


def _row(what: str, unit: Unit, before: int, after: int) -> dict[str, Any]:
    return {
        "change": what,
        "part": unit.what,
        "tokens_before": before,
        "tokens_after": after,
        "line": preview(unit.text),
    }


def _side_data(side: Side) -> dict[str, Any]:
    return {"name": side.name, "messages": side.messages, "tokens": side.tokens}


def _write(before: Side, after: Side, rows: list[dict[str, Any]], *, show_all: bool) -> None:
    shown = rows if show_all else rows[:SHOWN_ROWS]
    cells = [
        (
            _SIGNS[row["change"]],
            f"{row['tokens_before']:,}",
            f"{row['tokens_after']:,}",
            row["part"],
            styled(row["line"], _STYLES[row["change"]]),
        )
        for row in shown
    ]
    if cells:
        write_table([(" ", "before", "after", "part", "line"), *cells])
    if len(shown) < len(rows):
        click.echo(f"  ... and {len(rows) - len(shown)} more (--all lists them)")
    sides = [("a", before), ("b", after)]
    notes = [
        (n, float(s.tokens), f"{s.tokens:,} tokens of o200k, {s.messages} messages")
        for n, s in sides
    ]
    write_lines(bars(notes, _WIDTH))
    counts = {kind: sum(row["change"] == kind for row in rows) for kind in _SIGNS}
    said = ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
    click.echo(f"  {said or 'no difference'}")
