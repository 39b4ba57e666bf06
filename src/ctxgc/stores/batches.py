"""A batch without its detours: which documents to drop first, and which to put then."""

from __future__ import annotations

from collections.abc import Iterable

from ctxgc.stores.base import Collection
from ctxgc.stores.documents import Prepared

Name = tuple[Collection, str]


def collapse(writes: Iterable[Prepared]) -> tuple[list[Name], list[Prepared]]:
    """Return the names to drop and then the documents to put, each name once, to the same effect.

    A document that is dropped and put again is in both: it goes to the end of its collection.
    """
    drops: dict[Name, None] = {}
    puts: dict[Name, Prepared] = {}
    for write in writes:
        name = (write.collection, write.key)
        if write.text is None:
            drops[name] = None
            puts.pop(name, None)
        else:
            puts[name] = write
    return list(drops), list(puts.values())
