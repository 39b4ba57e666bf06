"""What changed: the store and the files of sessions are looked at while a page listens, and it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import NamedTuple

import anyio
import msgspec
from anyio import to_thread

from ctxgc.errors import StoreError
from ctxgc.insight import find_sessions, recorded_row_id, stored_row_id
from ctxgc.session import Store

LOOK_SECONDS = 1.0
QUIET_SECONDS = 15.0
"""After so long without news a comment keeps the connection, and shows whether the page is still there."""


class _Seen(NamedTuple):
    """What a session was like at a look."""

    mark: tuple[int, float]
    updated_at: datetime
    requests: int | None


class SessionChanges:
    """Finds out which sessions have changed since the last look."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._before: dict[str, _Seen] | None = None

    def look(self) -> list[bytes]:
        """Return an event for each session that is new or has changed; the first look finds none."""
        now = {**self._recorded(), **self._stored()}
        before = self._before
        self._before = now
        if before is None:
            return []
        return [_event(name, seen) for name, seen in now.items() if before.get(name) != seen]

    def _recorded(self) -> dict[str, _Seen]:
        return {
            recorded_row_id(each): _Seen(
                (each.size, each.updated_at.timestamp()), each.updated_at, None
            )
            for each in find_sessions()
        }

    def _stored(self) -> dict[str, _Seen]:
        if self._store is None:
            return {}
        try:
            infos = self._store.sessions()
        except StoreError:
            return {}
        return {
            stored_row_id(info.session_id): _Seen((info.revision, 0.0), info.updated_at, None)
            for info in infos
        }


async def events(store: Store | None, every: float = LOOK_SECONDS) -> AsyncIterator[bytes]:
    """Yield what changes as server-sent events, for as long as somebody asks for the next one."""
    changes = SessionChanges(store)
    await to_thread.run_sync(changes.look)
    quiet = 0.0
    yield b": listening\n\n"
    while True:
        await anyio.sleep(every)
        found = await to_thread.run_sync(changes.look)
        quiet = 0.0 if found else quiet + every
        for event in found:
            yield event
        if quiet >= QUIET_SECONDS:
            quiet = 0.0
            yield b": still here\n\n"


def _event(name: str, seen: _Seen) -> bytes:
    said = {"id": name, "requests": seen.requests, "updated_at": seen.updated_at}
    return b"event: session\ndata: " + msgspec.json.encode(said) + b"\n\n"
