"""The work that crash tests interrupt, and the check that nothing acknowledged was lost.

Commit number k puts five segments and a counter, and drops the segments of commit k-4. What a
session holds is therefore known from its revision alone, and half a batch cannot hide.
"""

from __future__ import annotations

import os
from typing import Any

from ctxgc.stores import Drop, Put, Store, Write, json_store, open_store

SESSION = "crash/../test"
KEPT = 4
EACH = 5


def batch(number: int) -> list[Write]:
    """Return the writes of one commit."""
    old = number - KEPT
    drops: list[Write] = [Drop("segments", _key(old, part)) for part in range(EACH) if old > 0]
    puts = [Put("segments", _key(number, part), _segment(number, part)) for part in range(EACH)]
    return [*drops, *puts, Put("state", "counter", {"commit": number})]


def expected(revision: int) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return what the session holds after so many commits."""
    numbers = range(max(revision - KEPT, 0) + 1, revision + 1)
    segments = [(_key(n, part), _segment(n, part)) for n in numbers for part in range(EACH)]
    counter = [("counter", {"commit": revision})] if revision else []
    return {"segments": segments, "state": counter}


def held(store: Store) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return what the session holds."""
    return {name: store.load(SESSION, name) for name in ("segments", "state")}


def check(url: str, acknowledged: int) -> int:
    """Open the store after a crash, assert that all is well, and return the revision found.

    The one commit that was under way may have arrived, whole; and the store must work on.
    """
    store = open_store(url)
    try:
        found = store.revision(SESSION)
        assert acknowledged <= found <= acknowledged + 1, (acknowledged, found)
        assert held(store) == expected(found)
        hits = store.search(f"unique{found}x0", session_id=SESSION)
        assert [hit.key for hit in hits] == ([_key(found, 0)] if found else [])
        assert [report for report in store.reports if report.kind == "damaged"] == []
        assert store.commit(SESSION, batch(found + 1), expect=found) == found + 1
        assert held(store) == expected(found + 1)
    finally:
        store.close()
    return found + 1


def run(url: str, first: int, count: int, pipe: int) -> None:
    """Commit, and acknowledge each commit on a pipe once it has returned."""
    json_store.SMALLEST_FOLD = 1 << 13  # so that folding happens often, and is interrupted too
    store = open_store(url)
    for number in range(first, first + count):
        assert store.commit(SESSION, batch(number), expect=number - 1) == number
        acknowledge(pipe, number)
    store.close()
    acknowledge(pipe, 0)


def acknowledge(pipe: int, number: int) -> None:
    """Tell the parent; by a system call of its own, so that no injected fault hits it."""
    os.writev(pipe, [b"%d\n" % number])


def _key(number: int, part: int) -> str:
    return f"{number}/{part}"


def _segment(number: int, part: int) -> dict[str, Any]:
    text = f"unique{number}x{part} " + "lorem ipsum \ud800 " * (number * 7 % 11 * part)
    return {"segment_id": _key(number, part), "text": text, "type": "log", "tags": [], "n": number}
