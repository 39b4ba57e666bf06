"""Moving sessions from one store to another: exports, imports and migrations are all this."""

from __future__ import annotations

from collections.abc import Iterable

from ctxgc.errors import InputError, StoreError
from ctxgc.stores.base import COLLECTIONS, Drop, Put, Store
from ctxgc.stores.exchange import documents


def copy_sessions(
    source: Store,
    target: Store,
    session_ids: Iterable[str] | None = None,
    *,
    replace: bool = False,
) -> dict[str, int]:
    """Copy sessions, each in one commit, and return how many documents each of them has.

    The source is not changed. In the target a session starts at revision 1; with `replace`, one that
    the target holds already goes on from its revision with the documents of the source.

    Raises:
        InputError: the source has no such session.
        StoreError: the target has a session of that name, or cannot be written. Sessions that were
            copied before stay copied.
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
    """Give the target the documents of a session, and no others, in one commit; return how many."""
    held = target.revision(session_id)
    drops = [Drop(name, key) for name in COLLECTIONS for key, _ in target.load(session_id, name)]
    puts = [Put(each.collection, each.key, each.doc) for each in documents(source, session_id)]
    target.commit(session_id, [*drops, *puts], expect=held)
    return len(puts)
