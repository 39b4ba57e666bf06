"""Where the stores of the tests lie: a place can be opened again, and by several handles at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ctxgc.stores import COLLECTIONS, MemoryStore, Put, Store, open_store

KINDS = ("memory", "json", "sqlite", "postgres")
NAMES = ("a", "\ud800/..\x00")
"""Sessions that `fill` writes: a plain name, and one that is no path and no UTF-8."""


class Place:
    """An address with all the handles that a test opened there."""

    def __init__(self, kind: str, url: str) -> None:
        self.kind = kind
        self.url = url
        self._memory = MemoryStore()
        self._open: list[Store] = []

    def open(self) -> Store:
        """Return a handle of its own; of a memory store there is only one."""
        store = self._memory if self.kind == "memory" else open_store(self.url)
        self._open.append(store)
        return store

    def close(self) -> None:
        """Close what the test left open."""
        for store in self._open:
            store.close()


def make_place(kind: str, folder: Path, database: Callable[[], str]) -> Place:
    """Return a fresh, empty place; `database` gives the address of an empty Postgres database."""
    urls: dict[str, Callable[[], str]] = {
        "memory": lambda: "memory:",
        "json": lambda: f"json:{folder}/stash.json",
        "sqlite": lambda: f"sqlite:{folder}/stash.db",
        "postgres": database,
    }
    return Place(kind, urls[kind]())


def segment(text: str, segment_id: str = "s", **fields: Any) -> dict[str, Any]:
    """Return a segment document."""
    made = {"text": text, "type": "message", "segment_id": segment_id, "tags": []}
    return {**made, "created_at": "2026-01-01T00:00:00Z", "tier": "stashed", **fields}


def fill(store: Store, names: tuple[str, ...] = NAMES) -> None:
    """Put documents into every collection of sessions, some of them twice."""
    for name in names:
        puts = [
            Put(each, key, segment(f"{name} {key}\ud800", key)) for each in COLLECTIONS for key in "zay"
        ]  # fmt: skip
        store.commit(name, puts)
        store.commit(name, [Put("segments", "z", segment("changed 1.0", "z", n=[1.0, 10**30]))])
