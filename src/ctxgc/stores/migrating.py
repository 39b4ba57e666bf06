"""Migrating sessions from one store to another: whole, verified, and resumed where it broke off."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ctxgc.errors import StoreBusyError, StoreError
from ctxgc.stores.base import Store
from ctxgc.stores.copy import copy_session
from ctxgc.stores.exchange import chosen_sessions, session_digest
from ctxgc.stores.importing import Progress


class Migrated(msgspec.Struct, frozen=True, kw_only=True):
    """What a migration did: the documents of each copied session, and the sessions found there.

    `digests` are those of all of them, the same in both stores.
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
) -> Migrated:
    """Copy sessions with all their documents, byte for byte; then compare both stores.

    The source is not changed. Each session is one commit, so a migration that broke off is gone on
    with by calling it again: what is in the target already is not copied twice.

    Args:
        source: where the sessions are.
        target: where they shall be.
        session_ids: which of them; all, if there are none.
        replace: whether a session that differs in the target is replaced.
        progress: is told after each session.

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
    return Migrated(copied=copied, present=present, digests=digests)


def _is_there(source: Store, target: Store, session_id: str, *, replace: bool) -> bool:
    if not target.revision(session_id):
        return False
    if session_digest(source, session_id) == session_digest(target, session_id):
        return True
    if replace:
        return False
    raise StoreError(
        f"the target has another session {session_id!r}",
        hint="replace it on purpose, or migrate the others by name",
        session_id=session_id,
    )


def _verified(source: Store, target: Store, session_id: str) -> str:
    digest = session_digest(source, session_id)
    if digest != session_digest(target, session_id):
        raise StoreBusyError(
            f"session {session_id!r} was written to while it was copied",
            hint="end what works on it and migrate again, replacing the copy",
            session_id=session_id,
        )
    return digest
