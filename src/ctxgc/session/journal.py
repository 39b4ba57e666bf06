"""The journal: what each request sent, and each change of the view, for whoever looks back.

It is stored with the session (in `events`), a small document per request and per change, and read only to
show it. The newest of both are kept; sessions of older versions have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar

import msgspec

from ctxgc.core import ContextSegment
from ctxgc.session.state import SessionState
from ctxgc.stores import Drop, Put, Store, Write

MOST_KEPT = 10_000
"""How many requests, and how many changes, a journal goes back."""

ChangeCause = Literal[
    "collection", "undo", "recall", "copies", "notice", "thinking", "delete", "rewind", "restore",
    "added",
]  # fmt: skip
"""Why the view changed other than by a message that came in."""


class JournalRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one request sent: as the session counted it, and as the provider did, where it told.

    `cached` of the `tokens` should have been in the provider's cache, which keeps them for `ttl_seconds`; it
    had lapsed if not `warm`. `unpruned` is the size had nothing been collected.
    """

    number: int
    at: datetime
    tokens: int
    cached: int
    limit: int
    unpruned: int
    warm: bool = True
    ttl_seconds: float | None = None
    model: str | None = None
    input: int | None = None
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    output: int = 0


class ViewChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one change did between two requests.

    `request` is the number of the one before. `out` are segments shown no longer, `back` those shown again;
    `fresh` are those that ctxgc put in, with their tokens, and `made` texts in place of others: their id,
    that of the original, and the tokens.
    """

    request: int
    cause: ChangeCause
    out: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    fresh: tuple[tuple[str, int], ...] = ()
    made: tuple[tuple[str, str, int], ...] = ()
    collection: int | None = None


def request_writes(request: JournalRequest) -> list[Write]:
    """Return the writes that put a request into the journal, or in place of what it said of it."""
    return _kept("r", request.number, request)


def change_writes(
    state: SessionState,
    cause: ChangeCause,
    *,
    out: Sequence[str],
    back: Sequence[str],
    fresh: Sequence[ContextSegment],
    made: Sequence[ContextSegment],
    collection: int | None,
) -> list[Write]:
    """Return the writes that put a change into the journal, and number it."""
    change = ViewChange(
        request=state.requests,
        cause=cause,
        out=tuple(out),
        back=tuple(back),
        fresh=tuple((s.segment_id, s.tokens or 0) for s in fresh),
        made=tuple((s.segment_id, str(s.derived_from), s.tokens or 0) for s in made),
        collection=collection,
    )
    state.changes += 1
    return _kept("c", state.changes, change)


def _kept(kind: str, number: int, entry: JournalRequest | ViewChange) -> list[Write]:
    doc: dict[str, Any] = msgspec.to_builtins(entry)
    writes: list[Write] = [Put("events", f"{kind}{number:08d}", doc)]
    if number > MOST_KEPT:
        writes.append(Drop("events", f"{kind}{number - MOST_KEPT:08d}"))
    return writes


class Journal(msgspec.Struct, frozen=True):
    """The requests and the changes of a session, in their order."""

    requests: list[JournalRequest]
    changes: list[ViewChange]


def read_journal(store: Store, session_id: str) -> Journal:
    """Return the journal of a session; entries that cannot be read are left out."""
    docs = sorted(store.load(session_id, "events"), key=lambda item: item[0])
    return Journal(_entries(docs, "r", JournalRequest), _entries(docs, "c", ViewChange))


_Entry = TypeVar("_Entry", JournalRequest, ViewChange)


def _entries(
    docs: Sequence[tuple[str, dict[str, Any]]], kind: str, made: type[_Entry]
) -> list[_Entry]:
    found = []
    for key, doc in docs:
        if not key.startswith(kind):
            continue
        try:
            found.append(msgspec.convert(doc, made))
        except msgspec.ValidationError:
            continue
    return found
