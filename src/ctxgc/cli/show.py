"""`ctxgc show`: one segment, and why it is where it is."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from ctxgc.cli.output import output_options, write_json, write_table
from ctxgc.cli.stash_store import (
    LINES_HELP,
    find_segment,
    line_range,
    opened,
    preview,
    printable,
    segment_row,
    session_option,
    store_option,
)
from ctxgc.core import SEGMENT_FIELDS, Analysis, ContextSegment, GCEngine, Heap, segment_from_dict
from ctxgc.session import excerpt
from ctxgc.stores import Store, chosen_sessions

# -- Why a segment is where it is: the roots that reach it, its links, and what moved it


MOST_LINKS = 12


class SegmentLink(msgspec.Struct, frozen=True):
    """A segment that this one refers to, or that refers to it."""

    way: str
    segment_id: str
    text: str


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Where a segment stands, the chain of reasons, the collections that moved it, and its links."""

    standing: str
    because: list[str]
    moves: list[str]
    links: list[SegmentLink]
    score: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def explain(store: Store, session_id: str, segment_id: str) -> Why:
    """Return why a segment of a session is where it is, as its engine sees it."""
    heap = _heap(store, session_id)
    segment = heap.get(segment_id)
    now = max((s.last_touched_at for s in heap), default=datetime.now(UTC))
    engine = GCEngine()
    analysis = engine.analyze(engine.state(heap, now))
    is_free = segment.tier == "working" and analysis.may_leave(segment_id)
    return Why(
        standing=_standing(segment, analysis),
        because=_because(segment, analysis),
        moves=_moves(store, session_id, segment),
        links=_links(heap, segment),
        score=_score(analysis, segment_id) if is_free else "",
    )


def _heap(store: Store, session_id: str) -> Heap:
    docs = [doc for _, doc in store.load(session_id, "segments")]
    known = {str(doc.get("segment_id")) for doc in docs}
    heap = Heap()
    heap.rebuild([_segment(doc, known) for doc in docs])
    return heap


def _segment(doc: dict[str, Any], known: set[str]) -> ContextSegment:
    """The segment of a document; links to what was deleted since are left out."""
    fields = {name: value for name, value in doc.items() if name in SEGMENT_FIELDS}
    fields["references"] = [ref for ref in fields.get("references") or () if ref in known]
    if fields.get("derived_from") not in known:
        fields["derived_from"] = None
    return segment_from_dict(fields)


def _standing(segment: ContextSegment, analysis: Analysis) -> str:
    if segment.tier == "stashed":
        return "stashed: out of the view, intact"
    if segment.segment_id in analysis.roots:
        return "working: a root, no collection takes it"
    if analysis.is_reachable(segment.segment_id):
        return "working: reachable, leaves only when garbage is not enough"
    return "working: nothing refers to it, leaves first"


def _because(segment: ContextSegment, analysis: Analysis) -> list[str]:
    found = []
    if segment.superseded_by is not None:
        found.append(f"superseded ({segment.superseded_how}) by {segment.superseded_by}")
    if segment.derived_from is not None:
        found.append(f"stands in for {segment.derived_from}")
    found += [f"{hop.segment_id}: {hop.via}" for hop in analysis.chain(segment.segment_id)]
    return found


def _moves(store: Store, session_id: str, segment: ContextSegment) -> list[str]:
    """The collections that moved the message of a segment, oldest first."""
    found = []
    for key, doc in sorted(store.load(session_id, "collections")):
        result = doc.get("result", {})
        for item in result.get("removal_list", ()):
            names = (item.get("child_key"), *item.get("message_ids", ()))
            if segment.message_id in names and segment.message_id is not None:
                by = f"{result.get('plugin_name')}, {result.get('trigger_reason')}"
                found.append(f"collection {int(key)} ({by}): {item.get('reason')}")
    return found


def _links(heap: Heap, segment: ContextSegment) -> list[SegmentLink]:
    out = heap.references.get(segment.segment_id, set())
    back = heap.backrefs.get(segment.segment_id, set())
    group = [other for other in heap.bonds.group(segment) if other != segment.segment_id]
    ways = [("bond", group), ("refers to", sorted(out)), ("referred by", sorted(back))]
    found = [SegmentLink(way, other, heap.get(other).text) for way, ids in ways for other in ids]
    return found[:MOST_LINKS]


def _score(analysis: Analysis, segment_id: str) -> str:
    return f"{analysis.score(segment_id):.2f} (higher stays longer)"


_EPILOG = """\b
Examples:
  ctxgc show h-yd2nyivw4i37wpnf                 the handle in a tombstone
  ctxgc show h-yd2nyivw4i37wpnf --lines 10-20   some of its lines
  ctxgc show s-42 --session work --why          only where it stands, and why
  ctxgc show s-42 --json

Exit codes: 0 shown, 1 an error or nothing answers to SEGMENT, 2 a wrong call.
"""


@click.command(short_help="Show a segment, and why it is where it is.", epilog=_EPILOG)
@click.argument("segment")
@store_option
@session_option
@click.option("--lines", metavar="FIRST-LAST", help=LINES_HELP)
@click.option("--pattern", metavar="TEXT", help="Only lines with this text, and two around each.")
@click.option("--why", "only_why", is_flag=True, help="Leave the text out.")
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
    """Show the text of SEGMENT, where it stands and why, and what it is linked with.

    SEGMENT is a handle, a segment's id or name, or the id of its message. The reason is a chain: the
    root that reaches it and the links between, or the collection that moved it out. Keys in the text
    are not masked: you asked for it.
    """
    with opened(store_url) as store:
        wanted = chosen_sessions(store, None if session is None else [session])
        where, key, doc = find_segment(store, segment, wanted)
        why = explain(store, where, key)
    text = excerpt(str(doc.get("text", "")), lines=line_range(lines), pattern=pattern)
    if as_json:
        found = {**segment_row(where, key, doc), "text": None if only_why else text}
        write_json({**found, "why": why.to_dict()})
    elif not quiet:
        _write_facts(where, key, doc, why)
        if not only_why:
            click.echo()
            tty = sys.stdout.isatty()
            click.echo(printable(text) if tty else text.encode("utf-8", "surrogatepass"))


def _write_facts(where: str, key: str, doc: dict[str, Any], why: Why) -> None:
    row = segment_row(where, key, doc)
    about = ("type", "role", "tokens", "file_path", "command", "task_id", "tags", "name", "policy")
    known = [(name, doc.get(name)) for name in about]
    facts = [(name, printable(str(value))) for name, value in known if value not in (None, [], "")]
    write_table(
        [
            ("segment", f"{key} ({row['handle']}) of session {printable(where)}, {row['age']} old"),
            *facts,
            ("tier", why.standing),
            *(("because" if not n else "", hop) for n, hop in enumerate(why.because)),
            *(("left", each) for each in why.moves),
            *((link.way, f"{link.segment_id}  {preview(link.text)}") for link in why.links),
            *([("score", why.score)] if why.score else []),
        ],
        indent="",
    )
