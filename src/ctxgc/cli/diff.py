"""`ctxgc diff`: what left, came and changed between two histories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ctxgc.cli.output import (
    FOUND_PROBLEMS,
    output_options,
    preview,
    write_json,
    write_lines,
    write_table,
)
from ctxgc.cli.session_argument import find_session
from ctxgc.cli.stores import command_store, session_option, store_option
from ctxgc.drawing import Column, Entry, count, terminal_bars, terminal_width
from ctxgc.errors import CtxgcError, InputError, PlanError
from ctxgc.insight import (
    ComparedHistory,
    HistoryDifference,
    compared_history,
    history_changes,
    open_writable,
)
from ctxgc.session import (
    CheckpointStore,
    Message,
    Store,
    chosen_sessions,
    copy_in_memory,
    messages_of,
    open_stored,
    utc_now,
)


def _read_history(name: str, store_url: str | None, session: str | None) -> ComparedHistory:
    """Return the history with a name, ready to compare.

    Raises:
        CtxgcError: there is none.
    """
    kind, _, rest = name.partition(":")
    if kind not in ("session", "checkpoint", "collection") or not rest:
        entries = open_writable(find_session(name)).entries
        return compared_history(name, (entry.message() for entry in entries))
    with command_store(store_url) as store:
        if kind == "checkpoint":
            return compared_history(name, _checkpoint(store, rest, session))
        wanted = rest if kind == "session" else one_session(store, session)
        return compared_history(name, _view(store, wanted, rest if kind == "collection" else None))


def one_session(store: Store, session: str | None) -> str:
    """Return the named session, or the only one in the store.

    Raises:
        InputError: there is none, or several.
    """
    known = chosen_sessions(store, None if session is None else [session])
    if len(known) != 1:
        said = f"the store has {len(known)} sessions"
        raise InputError(said, hint="choose one with --session; ctxgc stash list shows them")
    return known[0]


def find_checkpoint(store: Store, checkpoint_id: str, session: str | None) -> tuple[str, str]:
    """Return the session and the whole id of a checkpoint; the beginning of an id is enough.

    Raises:
        InputError: none, or more than one, begins with it.
    """
    sessions = chosen_sessions(store, None if session is None else [session])
    found = [
        (name, key)
        for name in sessions
        for key, _ in store.load(name, "checkpoints")
        if key.startswith(checkpoint_id)
    ]
    exact = [pair for pair in found if pair[1] == checkpoint_id]
    if len(exact or found) != 1:
        many = f"{len(found)} checkpoints begin with" if found else "there is no checkpoint"
        raise InputError(f"{many} {checkpoint_id!r}", hint="ctxgc checkpoint list shows them all")
    return (exact or found)[0]


def _checkpoint(store: Store, name: str, session: str | None) -> Sequence[Message]:
    session_id, key = find_checkpoint(store, name, session)
    return messages_of(CheckpointStore(store, session_id).get(key))


def _view(store: Store, session_id: str, collection: str | None) -> Sequence[Message]:
    """Return the view of a session now, or right before a collection; worked out on a copy."""
    chosen_sessions(store, [session_id])
    session = open_stored(copy_in_memory(store, session_id), session_id, utc_now())
    if collection is None:
        return session.history
    if not collection.isdigit():
        raise InputError(
            f"collection {collection!r} is not a number", hint="for example collection:3"
        )
    undone: list[Any] = []
    session.events(lambda event: undone.append(event.data.get("number")))
    try:
        while int(collection) not in undone:
            session.undo()
    except PlanError as error:
        raise _no_collection(collection, error) from None
    return session.history


def _no_collection(number: str, error: CtxgcError) -> InputError:
    return InputError(
        f"the view before collection {number} is not known: {error.message}",
        hint="ctxgc checkpoint list shows other points to compare with",
    )


SHOWN_ROWS = 40
_STYLES = {"left": "critical", "came": "safe", "changed": "warning"}
_SIGNS = {"left": "-", "came": "+", "changed": "~"}
_EPILOG = """\b
Examples:
  ctxgc diff session.jsonl pruned.jsonl
  ctxgc diff checkpoint:20260302 session:work      since a checkpoint
  ctxgc diff collection:3 session:work --session work
                                                   since collection 3

Exit codes: 0 equal, 1 different or an error, 2 usage error.
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

    Each is a transcript (a file, the beginning of a session id, or `latest`), or comes from a store:
    `session:NAME` (its view now), `checkpoint:ID`, or `collection:N` (the view right before it).
    """
    before, after = (_read_history(name, store_url, session) for name in (a, b))
    rows = [_row(change) for change in history_changes(before, after)]
    if as_json:
        sides = {"a": _side_data(before), "b": _side_data(after)}
        write_json({**sides, "differences": rows})
    elif not quiet:
        _write(before, after, rows, show_all=show_all)
    ctx.exit(FOUND_PROBLEMS if rows else 0)


def _row(change: HistoryDifference) -> dict[str, Any]:
    found = change._asdict()
    line = preview(found.pop("text"))
    return {**found, "line": line}


def _side_data(side: ComparedHistory) -> dict[str, Any]:
    return {"name": side.name, "messages": side.messages, "tokens": side.tokens}


def _write(
    before: ComparedHistory, after: ComparedHistory, rows: list[dict[str, Any]], *, show_all: bool
) -> None:
    shown = rows if show_all else rows[:SHOWN_ROWS]
    cells: list[tuple[Entry, ...]] = [
        (
            _SIGNS[row["change"]],
            f"{row['tokens_before']:,}",
            f"{row['tokens_after']:,}",
            row["part"],
            (row["line"], _STYLES[row["change"]]),
        )
        for row in shown
    ]
    write_table((" ", "before", "after", "part", Column("line", least=20)), cells)
    if len(shown) < len(rows):
        click.echo(f"  … and {len(rows) - len(shown):,} more (--all lists them)")
    sides = [("a", before), ("b", after)]
    notes = [
        (n, float(s.tokens), f"{s.tokens:,}", f"tokens of o200k, {count(s.messages, 'message')}")
        for n, s in sides
    ]
    write_lines(terminal_bars(notes, terminal_width()))
    counts = {kind: sum(row["change"] == kind for row in rows) for kind in _SIGNS}
    said = ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
    click.echo(f"  {said or 'no difference'}")
