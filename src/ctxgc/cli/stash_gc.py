"""`ctxgc stash gc`: the stash is collected too, after a rehearsal."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import click

from ctxgc.cli.report import output_options, paint, write_json, write_table
from ctxgc.cli.stash_store import (
    count,
    opened,
    preview,
    session_option,
    store_option,
    tell_progress,
)
from ctxgc.config import GCConfig, find_gc_file, read_gc_file
from ctxgc.core.segment import ContextSegment
from ctxgc.errors import InputError
from ctxgc.session import Session
from ctxgc.stores import Store
from ctxgc.stores.copy import copy_session
from ctxgc.stores.exchange import chosen_sessions
from ctxgc.stores.memory import MemoryStore

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000}
_NO_WINDOW = 1_000_000
"""For sessions that never had a window, such as those of S0's files; nothing depends on it here."""


class Amount(click.ParamType[float]):
    """A number with a unit, in the smallest one."""

    def __init__(self, name: str, units: dict[str, int]) -> None:
        self.name = name
        self._units = units

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return what a text such as `30d` amounts to."""
        match = _AMOUNT.fullmatch(str(value).strip())
        if match is None or match[2].lower() not in self._units:
            units = ", ".join(filter(None, self._units))
            self.fail(f"{value!r} is not a number with one of: {units}", param, ctx)
        return float(match[1]) * self._units[match[2].lower()]


@click.command(short_help="Collect the stash by age and size; a dry run by default.")
@store_option
@session_option
@click.option(
    "--older-than", type=Amount("age", _SECONDS), help="What was last used before: 30d, 12h."
)
@click.option(
    "--max-size", type=Amount("size", _BYTES), help="The oldest of each session beyond: 50MB."
)
@click.option("--apply", is_flag=True, help="Delete it. Without this nothing changes.")
@output_options
def gc(
    *,
    store_url: str | None,
    session: str | None,
    older_than: float | None,
    max_size: float | None,
    apply: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Delete stashed segments that are too old or too many; shows them first, deletes with --apply.

    What a tombstone in a view names, what working segments refer to, and pins stay. Limits that are
    not given here come from the configuration. End agents that work on a session first: a commit
    of theirs that comes later is refused.
    """
    limits = _limits(older_than, max_size)
    now = datetime.now(UTC)  # the same for the rehearsal and the real one
    with opened(store_url) as store:
        sessions = chosen_sessions(store, None if session is None else [session])
        tell = tell_progress("gc", quiet=quiet)
        found: list[tuple[str, ContextSegment]] = []
        for done, session_id in enumerate(sessions, 1):
            garbage = rehearse(store, session_id, now, **limits)
            if apply and garbage:
                collect(store, session_id, now, **limits)
            found += [(session_id, segment) for segment in garbage]
            tell(done, len(sessions))
    _write(found, applied=apply, as_json=as_json, quiet=quiet)


def rehearse(store: Store, session_id: str, now: datetime, **limits: Any) -> list[ContextSegment]:
    """Return what `collect` would delete, found out on a copy in memory."""
    copy = MemoryStore()
    copy_session(store, copy, session_id)
    known = {
        segment.segment_id: segment for segment in open_session(copy, session_id, now).segments()
    }
    return [known[segment_id] for segment_id in collect(copy, session_id, now, **limits)]


def collect(store: Store, session_id: str, now: datetime, **limits: Any) -> list[str]:
    """Collect the stash of a session and return the ids of what is gone."""
    session = open_session(store, session_id, now)
    gone = session.collect_stash(**limits)
    session.flush()
    return gone


def open_session(store: Store, session_id: str, now: datetime) -> Session:
    """Continue a session with its own window, and with a strategy that never acts by itself."""
    state = store.get(session_id, "state", "session") or {}
    limit = state.get("context_limit") or _NO_WINDOW
    return Session(limit, store=store, session_id=session_id, plugin="gc_none", clock=lambda: now)


def _limits(older_than: float | None, max_size: float | None) -> dict[str, Any]:
    path = find_gc_file()
    config = read_gc_file(path).config() if path is not None else GCConfig()
    age = config.stash_max_age_seconds if older_than is None else older_than
    size = config.stash_max_bytes if max_size is None else int(max_size)
    if age is None and size is None:
        raise InputError(
            "nothing says what is too old or too much",
            hint="give --older-than or --max-size",
            field="older_than",
        )
    return {"max_age_seconds": age, "max_bytes": size}


def _write(
    found: list[tuple[str, ContextSegment]], *, applied: bool, as_json: bool, quiet: bool
) -> None:
    tokens = sum(segment.tokens or 0 for _, segment in found)
    if as_json:
        rows = [
            {"session": name, "segment_id": s.segment_id, "tokens": s.tokens} for name, s in found
        ]
        write_json({"applied": applied, "tokens": tokens, "segments": rows})
    elif not quiet:
        write_table([(name, s.segment_id, s.type, preview(s.text)) for name, s in found])
        said = "deleted" if applied else "would be deleted; --apply does it"
        click.echo(
            f"{paint('ok:', 'green')} {count(len(found), 'segment')}, {count(tokens, 'token')} {said}"
        )
