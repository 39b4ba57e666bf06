"""`ctxgc show`: one segment, and why it is where it is."""

from __future__ import annotations

import sys
from typing import Any

import click

from ctxgc.cli.output import output_options, preview, printable, write_facts, write_json
from ctxgc.cli.stores import (
    LINES_HELP,
    command_stores,
    find_in_stores,
    line_range,
    segment_row,
    session_option,
    store_option,
)
from ctxgc.insight import SegmentReason, explain_segment
from ctxgc.session import excerpt

_EPILOG = """\b
Examples:
  ctxgc show h-yd2nyivw4i37wpnf                 the handle in a tombstone
  ctxgc show h-yd2nyivw4i37wpnf --lines 10-20   some of its lines
  ctxgc show s-42 --session work --why          only where it is, and why
  ctxgc show s-42 --json

Exit codes: 0 shown, 1 an error or no such segment, 2 usage error.
"""


@click.command(short_help="Show a segment, and why it is where it is.", epilog=_EPILOG)
@click.argument("segment")
@store_option
@session_option
@click.option("--lines", metavar="FIRST-LAST", help=LINES_HELP)
@click.option("--pattern", metavar="TEXT", help="Only lines with this text, with two around each.")
@click.option("--why", "only_why", is_flag=True, help="Omit the text.")
@output_options
def show(
    *,
    segment: str,
    store_url: str | None,
    session: str | None,
    lines: str | None,
    pattern: str | None,
    only_why: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show the text of SEGMENT, where it is and why, and what it is linked to.

    SEGMENT is a handle, a segment's id or name, or the id of its message. The reason is a chain: the
    root that reaches it and the links in between, or the collection that moved it out. Secrets in the
    text are not masked, since you asked for it.
    """
    with command_stores(store_url) as stores:
        store, where, key, doc = find_in_stores(stores, segment, session)
        why = explain_segment(store, where, key)
    text = excerpt(str(doc.get("text", "")), lines=line_range(lines), pattern=pattern)
    if as_json:
        found = {**segment_row(where, key, doc), "text": None if only_why else text}
        write_json({**found, "why": why.to_dict()}, secrets=True)
    elif not quiet:
        _write_facts(where, key, doc, why)
        if not only_why:
            click.echo()
            tty = sys.stdout.isatty()
            click.echo(printable(text) if tty else text.encode("utf-8", "surrogatepass"))


def _write_facts(where: str, key: str, doc: dict[str, Any], why: SegmentReason) -> None:
    row = segment_row(where, key, doc)
    about = ("type", "role", "tokens", "file_path", "command", "task_id", "tags", "name", "policy")
    known = [(name, doc.get(name)) for name in about]
    facts = [(name, printable(str(value))) for name, value in known if value not in (None, [], "")]
    write_facts(
        [
            ("segment", f"{key} ({row['handle']}) of session {printable(where)}, {row['age']} old"),
            *facts,
            ("tier", why.standing),
            *(("because" if not n else "", hop) for n, hop in enumerate(why.because)),
            *(("left", each) for each in why.moves),
            *((link.way, f"{link.segment_id}  {preview(link.text)}") for link in why.links),
            *([("score", why.score)] if why.score else []),
        ]
    )
