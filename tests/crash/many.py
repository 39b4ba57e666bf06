"""Many processes on one store: `python -m tests.crash.many URL PROCESSES SECONDS SEED`.

Every process notes what it asked, when, and what it got. Afterwards the notes of all must fit one
sequence of commits: each read shows the state after some commit, no older than what had returned
before it began, and no newer than what had begun before it ended.
"""

from __future__ import annotations

import json
import sys
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from functools import partial
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

from ctxgc.errors import StoreBusyError
from ctxgc.stores import Drop, Put, Store, Write, json_store, open_store
from tests.crash.children import Child

SESSIONS = ("left", "right")
LEAST = 25
"""How often each process asks, however slow the disk: enough for the processes to meet."""
Note = dict[str, Any]


def work(url: str, name: int, seconds: float, seed: int, notes: Path, _: int) -> None:
    """Do random things to the store until the time is over, and write down what happened."""
    json_store.SMALLEST_FOLD = 1 << 14
    random, store = Random(seed * 1000 + name), open_store(url)
    mine: dict[str, list[str]] = {session: [] for session in SESSIONS}
    deadline, done = time.monotonic() + seconds, []
    while time.monotonic() < deadline or len(done) < LEAST:
        session = random.choice(SESSIONS)
        ask = partial(_read, store, session)
        if random.random() < 0.7:
            ask = partial(_commit, store, session, f"{name}-{len(done)}", mine[session], random)
        start = time.monotonic_ns()
        note = ask()
        done.append({"session": session, "start": start, "end": time.monotonic_ns(), **note})
    store.close()
    notes.write_text(json.dumps(done), encoding="utf-8")


def _read(store: Store, session: str) -> Note:
    return {"read": [key for key, _ in store.load(session, "segments")]}


def _commit(store: Store, session: str, key: str, mine: list[str], random: Random) -> Note:
    expect = store.revision(session) if random.random() < 0.5 else None
    time.sleep(random.random() / 1000)  # long enough for another process to come between
    writes: list[Write] = [Put("segments", key, {"text": key * random.randint(1, 50), "by": key})]
    if len(mine) > 2:
        writes.append(Drop("segments", mine[0]))
    try:
        revision = store.commit(session, writes, expect=expect)
    except StoreBusyError as error:
        if expect is None or error.details["found"] <= expect:
            raise
        return {"refused": expect}
    if len(mine) > 2:
        mine.pop(0)
    mine.append(key)
    dropped = [write.key for write in writes if isinstance(write, Drop)]
    return {"revision": revision, "put": key, "dropped": dropped}


def judge(notes: list[Note], final: dict[str, list[str]]) -> Counter[str]:
    """Assert that the notes fit one sequence per session, and count them."""
    sessions: dict[str, list[Note]] = defaultdict(list)
    for note in notes:
        sessions[note["session"]].append(note)
    for session, each in sessions.items():
        commits = sorted((n for n in each if "put" in n), key=lambda n: int(n["revision"]))
        assert [n["revision"] for n in commits] == list(range(1, len(commits) + 1))
        _in_time(commits)
        states, window = _states(commits), _Window(commits)
        for read in (n for n in each if "read" in n):
            assert tuple(read["read"]) in states[window.of(read)], read
        assert tuple(final[session]) == states[-1]
    kinds = ("put", "read", "refused")
    return Counter(kind for note in notes for kind in kinds if kind in note)


def _in_time(commits: list[Note]) -> None:
    """Assert that no commit comes before one that had returned when it began."""
    latest_start = 0
    for commit in commits:
        assert commit["end"] >= latest_start, commit
        latest_start = max(latest_start, commit["start"])


def _states(commits: list[Note]) -> list[tuple[str, ...]]:
    keys: dict[str, None] = {}
    states: list[tuple[str, ...]] = [()]
    for commit in commits:
        keys[commit["put"]] = None
        for key in commit["dropped"]:
            del keys[key]
        states.append(tuple(keys))
    return states


class _Window:
    """Tells which commits a read may and must have seen."""

    def __init__(self, commits: list[Note]) -> None:
        self._ends, self._ended = _so_far(commits, "end")
        self._starts, self._started = _so_far(commits, "start")

    def of(self, read: Note) -> slice:
        """Return the states from the newest that had returned to the newest that had begun."""
        oldest = self._ended[bisect_left(self._ends, read["start"])]
        newest = self._started[bisect_left(self._starts, read["end"])]
        return slice(oldest, newest + 1)


def _so_far(commits: list[Note], moment: str) -> tuple[list[int], list[int]]:
    """Return moments in order, and the highest revision before each of them and after the last."""
    ordered = sorted((commit[moment], commit["revision"]) for commit in commits)
    return [when for when, _ in ordered], list(accumulate((r for _, r in ordered), max, initial=0))


def main(url: str, processes: int, seconds: float, seed: int, folder: Path) -> Counter[str]:
    """Run the processes, judge their notes, and return the counts."""
    papers = [folder / f"notes-{name}" for name in range(processes)]
    children = [Child(partial(work, url, n, seconds, seed, papers[n])) for n in range(processes)]
    for child in children:
        child.go()
    for child in children:
        child.acknowledged()
    assert [child.status for child in children] == [0] * processes
    store = open_store(url)
    final = {name: [key for key, _ in store.load(name, "segments")] for name in SESSIONS}
    store.close()
    notes = [note for paper in papers for note in json.loads(paper.read_text(encoding="utf-8"))]
    return judge(notes, final)


if __name__ == "__main__":
    counts = main(
        sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5])
    )
    print(json.dumps(counts))
