"""`ctxgc history` and `ctxgc trace`: what compactions removed, and where a phrase came from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import msgspec

from ctxgc.cli.output import (
    FOUND_PROBLEMS,
    age,
    highlighted,
    output_options,
    preview,
    printable,
    shown,
    write_json,
    write_lines,
    write_ok,
    write_table,
    write_text,
)
from ctxgc.cli.session_argument import find_session, optional_session_argument
from ctxgc.drawing import Column, Entry, count, rule, terminal_bars, terminal_width
from ctxgc.errors import InputError
from ctxgc.insight import (
    NameOrigin,
    Occurrence,
    PhraseTrace,
    RemovedPart,
    SessionCompaction,
    open_transcript,
    session_compactions,
    trace_phrase,
)

_ROWS = 10
_WORDS = {
    "user": "the user", "model": "the model", "thinking": "thinking", "call": "a call",
    "result": "a result", "summary": "the summary", "harness": "the agent's program",
    "system": "the system prompt",
}  # fmt: skip


# -- ctxgc history


_EPILOG = """\b
Examples:
  ctxgc history                     the compactions of the newest session here
  ctxgc history 5f8c --compaction 1
  ctxgc history latest --all --json

Exit codes: 0 done, 1 an error, 2 usage error.
"""


@click.command(short_help="Show what compactions removed from a session.", epilog=_EPILOG)
@optional_session_argument
@click.option("--compaction", "number", type=click.IntRange(min=1), help="Which; the last one.")
@click.option("--all", "show_all", is_flag=True, help="List everything that was removed.")
@output_options
def history(
    *, session: Path, number: int | None, show_all: bool, as_json: bool, quiet: bool
) -> None:
    """Show what each compaction of SESSION removed: requests, files, results.

    SESSION is a file, the beginning of a session id, or `latest`. The transcript has everything that
    was said, the window only what the compaction left. What came over word for word is not listed.
    """
    found = session_compactions(open_transcript(session))
    if number is not None and number > len(found):
        said = f"the session has {count(len(found), 'compaction')}, so none is number {number}"
        raise InputError(said, hint="ctxgc history lists them")
    if as_json:
        chosen = found if number is None else [found[number - 1]]
        write_json({"path": str(session), "compactions": msgspec.to_builtins(chosen)})
    elif not quiet and not found:
        write_ok("this session was never compacted")
    elif not quiet:
        _write_compactions(found)
        _write_removed(found[(number or 0) - 1], show_all=show_all)


def _write_compactions(found: Sequence[SessionCompaction]) -> None:
    columns = ("compaction", "line", "age", "trigger", "window before", "removed", "brought over")
    rows = [
        (
            str(each.number), str(each.line), age(each.at), each.trigger or "-",
            f"{each.tokens_before:,}", f"{each.tokens_removed:,}", f"{each.tokens_brought:,}",
        )
        for each in found
    ]  # fmt: skip
    write_table(columns, rows)


def _write_removed(found: SessionCompaction, *, show_all: bool) -> None:
    most = len(found.removed) if show_all else _ROWS
    _title(f"Removed by compaction {found.number}")
    ranked = sorted(found.by_who.items(), key=lambda row: -row[1])
    write_lines(
        terminal_bars(
            [(_WORDS[who], float(size), f"{size:,}") for who, size in ranked], terminal_width()
        )
    )
    if found.asked:
        _title("Requests of the user")
        _write_parts(found.asked[-most:])
        _and_more(len(found.asked) - most)
    if found.files:
        _title("Files")
        rows = [
            (shown(each.path), f"{each.tokens:,}", count(each.used_again, "time"))
            for each in found.files[:most]
        ]
        columns = (Column("file", right=False, least=16, keep="end"), "tokens", "used again")
        write_table(columns, rows)
        _and_more(len(found.files) - most)
    _title("Largest parts" if not show_all else "All parts")
    largest = sorted(found.removed, key=lambda part: (-part.tokens, part.line))
    _write_parts(found.removed if show_all else largest[:most])
    _and_more(len(found.removed) - most)


def _write_parts(parts: Iterable[RemovedPart]) -> None:
    columns = (
        Column("line"), Column("tokens"), Column("who", right=False),
        Column("what", right=False, least=24),
    )  # fmt: skip
    rows = [
        (str(p.line), f"{p.tokens:,}", _WORDS[p.who], shown(p.about) or preview(p.text))
        for p in parts
    ]
    write_table(columns, rows)


def _title(text: str) -> None:
    write_lines([rule(text, terminal_width())])


def _and_more(left: int) -> None:
    if left > 0:
        write_text(f"and {left:,} more (--all lists them)", "faint")


# -- ctxgc trace


_TRACE_EPILOG = """\b
Examples:
  ctxgc trace "3 tests failed"            in the newest session here
  ctxgc trace "1.19x faster" 5f8c
  ctxgc trace "never touch the lexer" latest --json

Exit codes: 0 the phrase was found, 1 it was not, or an error, 2 usage error.
"""


@click.command(short_help="Show where a phrase in a session came from.", epilog=_TRACE_EPILOG)
@click.argument("phrase")
@click.argument("session", required=False)
@output_options
@click.pass_context
def trace(
    ctx: click.Context, /, *, phrase: str, session: str | None, as_json: bool, quiet: bool
) -> None:
    """Show who said PHRASE first in SESSION, and who repeated it: you, a tool's result, or the model.

    If the model said it first, each name and number in it is looked for in what came before: what
    is found nowhere, the model made up or computed. Windows that were compacted away, and subagents,
    are searched too. Case and line breaks make no difference.
    """
    found = trace_phrase(find_session(session), phrase)
    if as_json:
        write_json(msgspec.to_builtins(found))
    elif not quiet:
        _write_trace(found)
    ctx.exit(0 if found.found else FOUND_PROBLEMS)


def _write_trace(found: PhraseTrace) -> None:
    if not found.found:
        write_text("nobody said that in this session")
        if found.near:
            write_text("The nearest lines:", "faint")
            _write_places(found.near, found.phrase)
        return
    write_text(_verdict(found))
    _title(count(len(found.found), "place"))
    _write_places(found.found, found.phrase)
    if found.names:
        _title("Its names and numbers")
        columns = ("name", Column("line"), Column("from", right=False), Column("text", least=20))
        write_table(columns, [_name_row(each) for each in found.names])


def _verdict(found: PhraseTrace) -> str:
    first = found.found[0]
    is_kept = any(each.in_window for each in found.found)
    kept = "still in the window" if is_kept else "no longer in the window"
    if found.origin is not None:
        return f"It came from {_source(first)}, line {first.line}; {kept}."
    return f"The model said it first, in {_source(first)}, line {first.line}; {kept}."


def _source(place: Occurrence) -> str:
    word = {"model": "its own words", "thinking": "its thinking"}.get(place.who, _WORDS[place.who])
    of = f" of {shown(place.about)}" if place.about else ""
    by = "" if place.window else " (subagent)"
    return f"{word}{of}{by}"


def _write_places(places: Sequence[Occurrence], phrase: str) -> None:
    columns = (
        Column("line"), Column("window"), Column("who", right=False), Column("now", right=False),
        Column("text", right=False, least=24),
    )  # fmt: skip
    rows: list[tuple[Entry, ...]] = [
        (
            str(each.line), str(each.window) if each.window else "subagent", _WORDS[each.who],
            "in" if each.in_window else "out", highlighted(shown(each.text), [phrase]),
        )
        for each in places
    ]  # fmt: skip
    write_table(columns, rows)


def _name_row(each: NameOrigin) -> tuple[str, ...]:
    if each.origin is None:
        return (printable(each.name), "-", "nowhere before", "")
    place = each.origin
    return (printable(each.name), str(place.line), _WORDS[place.who], shown(place.text))
