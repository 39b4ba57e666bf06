"""The sides of a comparison: histories from transcripts and from stores, part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ctxgc.cli.session_argument import find_session
from ctxgc.cli.stash_gc import open_session
from ctxgc.cli.stash_store import opened
from ctxgc.core.message import Message
from ctxgc.errors import CtxgcError, InputError, PlanError
from ctxgc.guard.shelf import CheckpointShelf
from ctxgc.session.checkpoints import messages_of
from ctxgc.stores import Store
from ctxgc.stores.copy import copy_session
from ctxgc.stores.exchange import chosen_sessions
from ctxgc.stores.memory import MemoryStore
from ctxgc.tokens import counter_for
from ctxgc.wire.transcripts.writing import open_writable


class Unit(NamedTuple):
    """One part of a message; `key` is the same in two histories that both hold it."""

    key: tuple[str, str, int]
    what: str
    text: str
    tokens: int


class Side(NamedTuple):
    """A history to compare."""

    name: str
    messages: int
    units: list[Unit]

    @property
    def tokens(self) -> int:
        """The tokens of all its parts."""
        return sum(unit.tokens for unit in self.units)


def read_side(name: str, store_url: str | None, session: str | None) -> Side:
    """Return the history that a name means.

    Raises:
        CtxgcError: it means none.
    """
    kind, _, rest = name.partition(":")
    if kind not in ("session", "checkpoint", "collection") or not rest:
        entries = open_writable(find_session(name)).entries
        return _side(name, (entry.message() for entry in entries))
    with opened(store_url) as store:
        if kind == "checkpoint":
            return _side(name, _checkpoint(store, rest, session))
        wanted = rest if kind == "session" else one_session(store, session)
        return _side(name, _view(store, wanted, rest if kind == "collection" else None))


def one_session(store: Store, session: str | None) -> str:
    """Return the session that is meant: the named one, or the only one that the store has.

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
        InputError: none, or more than one, begins like this.
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
    return messages_of(CheckpointShelf(store, session_id).get(key))


def _view(store: Store, session_id: str, collection: str | None) -> Sequence[Message]:
    """The view of a session, on a copy: now, or right before a collection."""
    chosen_sessions(store, [session_id])
    copy = MemoryStore()
    copy_session(store, copy, session_id)
    session = open_session(copy, session_id, datetime.now(UTC))
    if collection is None:
        return session.history
    if not collection.isdigit():
        raise InputError(f"collection {collection!r} is no number", hint="for example collection:3")
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


def _side(name: str, messages: Iterable[Message | None]) -> Side:
    count = counter_for(None).count
    sound = [message for message in messages if message is not None]
    seen: Counter[tuple[str, str]] = Counter()
    units = []
    for message in sound:
        for part in message.parts:
            # A call and its result are known by the id of the call, everything else by what it says.
            named = part.call_id if part.kind in ("tool_call", "tool_result") else None
            key = (f"{message.role} {part.kind}", named or part.text)
            what = part.kind.replace("_", " ") if part.kind != "text" else message.role
            label = f"{what} {part.name}" if part.name else what
            units.append(Unit((*key, seen[key]), label, part.text, count(part.text)))
            seen[key] += 1
    return Side(name, len(sound), units)
