"""Moving sessions between stores: copies, imports of an export, and verified migrations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ctxgc.core import SEGMENT_FIELDS, segment_from_dict
from ctxgc.errors import DuplicateSegmentError, InputError, SegmentError, StoreBusyError, StoreError
from ctxgc.stores.base import COLLECTIONS, Drop, Put, Store, encode
from ctxgc.stores.export import ExportEntry, chosen_sessions, session_digest, session_documents

Progress = Callable[[int, int], object]


def copy_sessions(
    source: Store,
    target: Store,
    session_ids: Iterable[str] | None = None,
    *,
    replace: bool = False,
) -> dict[str, int]:
    """Copy sessions, each in one commit, and return how many documents each of them has.

    The source is not changed. In the target a session starts at revision 1; with `replace`, one that
    the target already has continues from its revision with the documents of the source.

    Raises:
        InputError: the source has no such session.
        StoreError: the target has a session of that name, or cannot be written. Sessions copied
            before that stay copied.
    """
    known = {info.session_id for info in source.sessions()}
    wanted = sorted(known) if session_ids is None else list(dict.fromkeys(session_ids))
    for session_id in wanted:
        if session_id not in known:
            raise InputError(f"there is no session {session_id!r}", field="session_ids")
        if not replace and target.revision(session_id):
            raise StoreError(
                f"the target has a session {session_id!r} already",
                hint="copy with replace=True, or name other sessions",
                session_id=session_id,
            )
    return {session_id: copy_session(source, target, session_id) for session_id in wanted}


def copy_session(source: Store, target: Store, session_id: str) -> int:
    """Make a session of the target hold exactly the source's documents, in one commit; return how many."""
    held = target.revision(session_id)
    drops = [Drop(name, key) for name in COLLECTIONS for key, _ in target.load(session_id, name)]
    puts = [
        Put(each.collection, each.key, each.doc) for each in session_documents(source, session_id)
    ]
    target.commit(session_id, [*drops, *puts], expect=held)
    return len(puts)


# -- Import


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did, in documents.

    `present` were there already, byte for byte. `kept` counts documents that were not imported because
    the store has its own, or an existing session that does not need them.
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
    entries: Iterable[ExportEntry],
    *,
    into: str | None = None,
    progress: Progress | None = None,
) -> ImportResult:
    """Import documents, each session in one commit; importing them again changes nothing.

    A session that the store does not have is imported whole. To an existing one only missing segments
    are added, as stashed ones: its view is not touched.

    Args:
        target: the store.
        entries: the documents.
        into: the name that their session gets here; there must be only one then.
        progress: called after each session with how many are done, and of how many.

    Raises:
        DuplicateSegmentError: the store has another text under the same id. Nothing was written.
        SegmentError: an entry is not a segment. Nothing was written.
        StoreBusyError: a session was written to meanwhile; it can be imported again.
    """
    groups = _by_session(entries, into)
    plans = [_plan(target, session_id, group) for session_id, group in groups.items()]
    for done, plan in enumerate(plans, 1):
        if plan.puts:
            target.commit(plan.session_id, plan.puts, expect=plan.revision)
        if progress is not None:
            progress(done, len(plans))
    return ImportResult(
        sessions=tuple(groups),
        added=sum(len(plan.puts) for plan in plans),
        present=sum(plan.present for plan in plans),
        kept=sum(plan.kept for plan in plans),
    )


def _by_session(entries: Iterable[ExportEntry], into: str | None) -> dict[str, list[ExportEntry]]:
    groups: dict[str, list[ExportEntry]] = {}
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


def _checked(entry: ExportEntry) -> ExportEntry:
    """Return an entry as a session can use it; segments in S0's files may lack an id."""
    if entry.collection != "segments":
        return entry
    try:
        segment_from_dict({k: v for k, v in entry.doc.items() if k in SEGMENT_FIELDS})
    except SegmentError as error:
        raise SegmentError(
            f"{entry.key!r} of session {entry.session_id!r} is not a segment: {error.message}",
            hint=error.hint,
            **error.details,
        ) from None
    if "segment_id" in entry.doc:
        return entry
    return msgspec.structs.replace(entry, doc={**entry.doc, "segment_id": entry.key})


def _plan(target: Store, session_id: str, entries: list[ExportEntry]) -> _Plan:
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


def _compare(plan: _Plan, entry: ExportEntry, here: dict[str, Any], others: list[str]) -> None:
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


# -- Migration


class MigrationResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a migration did: the documents of each copied session, and the sessions already present.

    `digests` has the digest of every session, the same in both stores.
    """

    copied: dict[str, int]
    present: tuple[str, ...]
    digests: dict[str, str]


def migrate_sessions(
    source: Store,
    target: Store,
    session_ids: Iterable[str] | None = None,
    *,
    replace: bool = False,
    progress: Progress | None = None,
) -> MigrationResult:
    """Copy sessions with all their documents, byte for byte; then compare both stores.

    The source is not changed. Each session is one commit, so an interrupted migration is resumed by
    calling it again: what the target already has is not copied twice.

    Args:
        source: where the sessions are.
        target: where to copy them.
        session_ids: which of them; all if None.
        replace: whether a session that differs in the target is replaced.
        progress: called after each session with how many are done, and of how many.

    Raises:
        InputError: the source has no such session.
        StoreError: the target has another session of that name. Nothing was copied.
        StoreBusyError: a session was written to while it was copied.
    """
    wanted = chosen_sessions(source, session_ids)
    present = tuple(name for name in wanted if _is_there(source, target, name, replace=replace))
    copied: dict[str, int] = {}
    for done, session_id in enumerate(wanted, 1):
        if session_id not in present:
            copied[session_id] = copy_session(source, target, session_id)
        if progress is not None:
            progress(done, len(wanted))
    digests = {session_id: _verified(source, target, session_id) for session_id in wanted}
    return MigrationResult(copied=copied, present=present, digests=digests)


def _is_there(source: Store, target: Store, session_id: str, *, replace: bool) -> bool:
    if not target.revision(session_id):
        return False
    if session_digest(source, session_id) == session_digest(target, session_id):
        return True
    if replace:
        return False
    raise StoreError(
        f"the target has another session {session_id!r}",
        hint="pass replace=True, or migrate the others by name",
        session_id=session_id,
    )


def _verified(source: Store, target: Store, session_id: str) -> str:
    digest = session_digest(source, session_id)
    if digest != session_digest(target, session_id):
        raise StoreBusyError(
            f"session {session_id!r} was written to while it was copied",
            hint="stop what writes to it and migrate again, replacing the copy",
            session_id=session_id,
        )
    return digest
