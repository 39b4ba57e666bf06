"""Taking an export into a store: what is missing comes in, what is there stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ctxgc.core.codec import segment_from_dict
from ctxgc.core.segment import SEGMENT_FIELDS
from ctxgc.errors import DuplicateSegmentError, InputError, SegmentError
from ctxgc.stores.base import COLLECTIONS, Put, Store
from ctxgc.stores.documents import encode
from ctxgc.stores.exchange import Entry

Progress = Callable[[int, int], object]
"""Is told how many sessions are done, and of how many."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did, in documents.

    `present` were there already, byte for byte. For `kept` the store has a document of its own, or a
    session that goes on without it; that stays.
    """

    sessions: tuple[str, ...]
    added: int = 0
    present: int = 0
    kept: int = 0


class _Plan(msgspec.Struct):
    session_id: str
    revision: int
    puts: list[Put]
    present: int = 0
    kept: int = 0


def import_entries(
    target: Store,
    entries: Iterable[Entry],
    *,
    into: str | None = None,
    progress: Progress | None = None,
) -> Imported:
    """Take documents in, each session in one commit; the same ones twice change nothing.

    A session that the store does not have comes in whole. To one that it has, only the segments that
    it misses are added, as stashed ones: its view is not touched.

    Args:
        target: the store.
        entries: the documents.
        into: the name that their session gets here; there may be only one then.
        progress: is told after each session.

    Raises:
        DuplicateSegmentError: the store has another text under the same id. Nothing was written.
        SegmentError: an entry is no segment. Nothing was written.
        StoreBusyError: a session was continued meanwhile; it can be imported again.
    """
    groups = _by_session(entries, into)
    plans = [_plan(target, session_id, group) for session_id, group in groups.items()]
    for done, plan in enumerate(plans, 1):
        if plan.puts:
            target.commit(plan.session_id, plan.puts, expect=plan.revision)
        if progress is not None:
            progress(done, len(plans))
    return Imported(
        sessions=tuple(groups),
        added=sum(len(plan.puts) for plan in plans),
        present=sum(plan.present for plan in plans),
        kept=sum(plan.kept for plan in plans),
    )


def _by_session(entries: Iterable[Entry], into: str | None) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.session_id, []).append(_checked(entry))
    if into is None:
        return groups
    if len(groups) != 1:
        raise InputError(
            f"{len(groups)} sessions cannot all be {into!r}",
            hint="choose one of them",
            field="into",
        )
    return {into: next(iter(groups.values()))}


def _checked(entry: Entry) -> Entry:
    """Return an entry as a session can use it; S0's files need not name their segments."""
    if entry.collection != "segments":
        return entry
    try:
        segment_from_dict({k: v for k, v in entry.doc.items() if k in SEGMENT_FIELDS})
    except SegmentError as error:
        raise SegmentError(
            f"{entry.key!r} of session {entry.session_id!r} is no segment: {error.message}",
            hint=error.hint,
            **error.details,
        ) from None
    if "segment_id" in entry.doc:
        return entry
    return msgspec.structs.replace(entry, doc={**entry.doc, "segment_id": entry.key})


def _plan(target: Store, session_id: str, entries: list[Entry]) -> _Plan:
    plan = _Plan(session_id, target.revision(session_id), [])
    held = {(name, key): doc for name in COLLECTIONS for key, doc in target.load(session_id, name)}
    others: list[str] = []
    for entry in entries:
        here = held.get((entry.collection, entry.key))
        if here is not None:
            _compare(plan, entry, here, others)
        elif not plan.revision:
            plan.puts.append(Put(entry.collection, entry.key, entry.doc))
        elif entry.collection == "segments":
            plan.puts.append(Put("segments", entry.key, {**entry.doc, "tier": "stashed"}))
        else:
            plan.kept += 1
    if others:
        raise _conflict(session_id, others)
    return plan


def _compare(plan: _Plan, entry: Entry, here: dict[str, Any], others: list[str]) -> None:
    if encode(here) == encode(entry.doc):
        plan.present += 1
    elif entry.collection == "segments" and here.get("text") != entry.doc.get("text"):
        others.append(entry.key)
    else:
        plan.kept += 1


def _conflict(session_id: str, keys: list[str]) -> DuplicateSegmentError:
    more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
    return DuplicateSegmentError(
        f"session {session_id!r} holds another text under {keys[0]!r}{more}",
        hint="import it under another session's name, or into another store",
        session_id=session_id,
        keys=keys,
    )
