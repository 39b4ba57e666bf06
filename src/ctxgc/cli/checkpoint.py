"""`ctxgc checkpoint`: points that a session can return to."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from ctxgc.cli.diff import find_checkpoint, one_session
from ctxgc.cli.output import (
    FOUND_PROBLEMS,
    age,
    output_options,
    preview,
    printable,
    warn,
    write_facts,
    write_json,
    write_ok,
    write_table,
)
from ctxgc.cli.stores import command_store, session_option, store_option
from ctxgc.drawing import Column, count
from ctxgc.errors import CtxgcError
from ctxgc.session import (
    Checkpoint,
    CheckpointStore,
    Message,
    Store,
    chosen_sessions,
    compare_files,
    messages_of,
    open_stored,
    utc_now,
)

_EPILOG = """\b
Examples:
  ctxgc checkpoint make --session work --label "before the refactoring"
  ctxgc checkpoint make --if-due --next-operation large_merge
  ctxgc checkpoint list
  ctxgc checkpoint show 20260302
  ctxgc checkpoint restore 20260302     the beginning of an id is enough
  ctxgc checkpoint verify              reads every checkpoint of the store

Exit codes: 0 done, 1 an error or a damaged checkpoint, 2 usage error.
"""


@click.group(short_help="List, make, verify and restore checkpoints.", epilog=_EPILOG)
def checkpoint() -> None:
    """Points that a session can return to: its view, its pins, and checksums of its files.

    They are sealed: a single changed bit is detected. Sessions and stores are named as in `ctxgc stash`.
    """


@checkpoint.command("list")
@store_option
@session_option
@output_options
def list_(store_url: str | None, session: str | None, as_json: bool, quiet: bool) -> None:
    """List the checkpoints of all sessions, or of one, oldest first."""
    with command_store(store_url) as store:
        sessions = chosen_sessions(store, None if session is None else [session])
        found = [
            {"session": name, **msgspec.to_builtins(info)}
            for name in sessions
            for info in CheckpointStore(store, name).list()
        ]
    if as_json:
        write_json(found)
    elif not quiet and found:
        rows = [
            (x["checkpoint_id"], x["session"], age(x["timestamp"]), f"{x['size']:,}", _label(x))
            for x in found
        ]
        session_column, label = Column("session", least=8), Column("label", least=10)
        write_table(("checkpoint", session_column, "age", "bytes", label), rows)


@checkpoint.command()
@store_option
@session_option
@click.option("--label", default="", help="Label; labelled checkpoints are kept longest.")
@click.option(
    "--if-due",
    is_flag=True,
    help="Only if the context is full, the last one old, or an option below says so.",
)
@click.option(
    "--phase-changed", is_flag=True, help="With --if-due: a new phase of the work begins."
)
@click.option("--tasks-completed", type=int, help="With --if-due: every fifth task counts.")
@click.option("--next-operation", help="With --if-due: major_refactor or large_merge count.")
@output_options
def make(
    *,
    store_url: str | None,
    session: str | None,
    label: str,
    if_due: bool,
    as_json: bool,
    quiet: bool,
    **progress: Any,
) -> None:
    """Make a checkpoint of a session as it is now."""
    with command_store(store_url) as store:
        name = one_session(store, session)
        stored = open_stored(store, name, utc_now())
        why = stored.inspect().guard.triggers_due(**progress) if if_due else []
        made = stored.checkpoint(label, triggers=why) if why or not if_due else None
    known = made.checkpoint_id if made else None
    if as_json:
        write_json({"session": name, "checkpoint_id": known, "label": label, "triggers": why})
    elif not quiet:
        write_ok(f"{known} of session {name}" if known else f"none is due in session {name}")


@checkpoint.command()
@click.argument("checkpoint_id", metavar="CHECKPOINT")
@store_option
@session_option
@output_options
def show(
    checkpoint_id: str, store_url: str | None, session: str | None, as_json: bool, quiet: bool
) -> None:
    """Show what CHECKPOINT holds, and which files changed since."""
    with command_store(store_url) as store:
        name, key = find_checkpoint(store, checkpoint_id, session)
        found = CheckpointStore(store, name).get(key)
    if as_json:
        write_json(_as_data(name, found))
    elif not quiet:
        _write_checkpoint(name, found)


@checkpoint.command()
@click.argument("checkpoint_id", metavar="CHECKPOINT")
@store_option
@session_option
@output_options
def restore(
    checkpoint_id: str, store_url: str | None, session: str | None, as_json: bool, quiet: bool
) -> None:
    """Restore the view of a session to CHECKPOINT, byte for byte.

    What was added since is stashed. Files are not touched; those that differ are listed. Stop the
    agent that works on the session first: its next commit would be refused.
    """
    with command_store(store_url) as store:
        name, key = find_checkpoint(store, checkpoint_id, session)
        continued = open_stored(store, name, utc_now())
        restored = continued.restore(key)
        continued.flush()
        messages = len(continued.history)
    changed = [msgspec.to_builtins(each) for each in restored.differences]
    if as_json:
        write_json(
            {"session": name, "checkpoint_id": key, "messages": messages, "differences": changed}
        )
    elif not quiet:
        write_ok(f"session {name} restored to {key}: {count(messages, 'message')}")
        for each in changed:
            warn(f"{each['path']}: {each['kind']} since")


@checkpoint.command()
@click.argument("checkpoint_id", metavar="[CHECKPOINT]", required=False)
@store_option
@session_option
@output_options
@click.pass_context
def verify(
    ctx: click.Context,
    /,
    *,
    checkpoint_id: str | None,
    store_url: str | None,
    session: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Check that CHECKPOINT, or every checkpoint, is what was written."""
    with command_store(store_url) as store:
        sessions = chosen_sessions(store, None if session is None else [session])
        chosen = [find_checkpoint(store, checkpoint_id, session)] if checkpoint_id else None
        found = chosen or [(n, key) for n in sessions for key, _ in store.load(n, "checkpoints")]
        broken = {key: why for name, key in found if (why := damage(store, name, key))}
    if as_json:
        write_json({"verified": len(found) - len(broken), "damaged": broken})
    elif not quiet:
        for key, why in broken.items():
            warn(f"{key}: {why}")
        write_ok(f"{len(found) - len(broken)} of {count(len(found), 'checkpoint')} verified")
    ctx.exit(FOUND_PROBLEMS if broken else 0)


def damage(store: Store, session_id: str, key: str) -> str | None:
    """Return what is wrong with a stored checkpoint; None if it verifies."""
    try:
        CheckpointStore(store, session_id).get(key).verify()
    except CtxgcError as error:
        return error.message
    return None


def _label(info: dict[str, Any]) -> str:
    return printable(info["label"] or ", ".join(info["triggers"]) or "-")


def _differences(found: Checkpoint) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(each) for each in compare_files(found)]


def _as_data(session_id: str, found: Checkpoint) -> dict[str, Any]:
    names = ("checkpoint_id", "label", "timestamp", "triggers", "metrics", "task_queue")
    return {
        "session": session_id,
        **{name: getattr(found, name) for name in names},
        "files": found.file_checksums,
        "differences": _differences(found),
        "view": [message.data for message in messages_of(found)],
    }


def _write_checkpoint(session_id: str, found: Checkpoint) -> None:
    messages = messages_of(found)
    usage = found.metrics
    write_facts(
        [
            ("checkpoint", found.checkpoint_id),
            ("session", printable(session_id)),
            ("made", f"{found.timestamp.isoformat()} ({age(found.timestamp)} ago)"),
            ("label", printable(found.label or "-")),
            ("because", printable(", ".join(found.triggers) or "requested")),
            ("view", f"{count(len(messages), 'message')}, {usage.get('total_tokens', 0):,} tokens"),
            ("files", count(len(found.file_checksums), "checksum")),
        ]
    )
    write_table(("", Column(least=20)), [(m.role, preview(_said(m))) for m in messages[-10:]])
    for each in _differences(found):
        warn(f"{each['path']}: {each['kind']} since")


def _said(message: Message) -> str:
    """Return the text of a message, or of its first part."""
    return message.text() or next((part.text for part in message.parts), "")
