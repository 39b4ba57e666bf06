"""Rounds of crashes, as a program of its own: `python -m tests.crash.rounds KIND URL N SEED`.

It runs alone in its process because it forks. What it counted is its last line, as JSON.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import TypeVar

from ctxgc.errors import StoreBusyError, StoreError
from ctxgc.stores import json_store, open_store
from tests.crash.children import Child, inject
from tests.crash.workload import SESSION, acknowledge, batch, check, expected, held, run

T = TypeVar("T")

CALLS = "pwrite64,write,fsync,fdatasync,ftruncate,rename,unlink,openat,flock"
FAILING = "pwrite64,fsync,fdatasync,ftruncate,rename,openat,read,pread64"
ERRORS = ("EIO", "ENOSPC", "EACCES", "EROFS", "EMFILE")
COMMITS = 12


def at_random_moments(url: str, rounds: int, random: Random) -> dict[str, int]:
    """Kill a writer at a random moment, again and again on one store.

    Every other one has acknowledged a commit before, for a slow disk may need longer than we wait.
    """
    revision = acknowledged = 0
    for number in range(rounds):
        child = Child(partial(run, url, revision + 1, 10_000))
        child.go()
        if number % 2:
            child.wait_for_work()
        time.sleep(random.uniform(0.0, 0.06))
        child.kill()
        done = child.acknowledged()
        acknowledged += len(done)
        revision = check(url, done[-1] if done else revision)
    return {"kills": rounds, "acknowledged": acknowledged, "lost": 0}


def at_system_calls(url: str, rounds: int, random: Random) -> dict[str, int]:
    """Kill a writer at its Nth system call: a sample of all N, or all of them."""
    revision = acknowledged = kills = 0
    calls = range(1, 40 if url.startswith("json") else 150)
    numbers = itertools.count(1) if rounds <= 0 else sorted(random.sample(calls, rounds))
    for number in numbers:
        child = Child(partial(run, url, revision + 1, COMMITS))
        tracer = inject(child, f"{CALLS}:signal=SIGKILL:when={number}")
        child.go()
        done = child.acknowledged()
        tracer.wait()
        ended = bool(done) and done[-1] == 0
        done = [each for each in done if each]
        acknowledged, kills = acknowledged + len(done), kills + (not ended)
        revision = check(url, done[-1] if done else revision)
        if ended and rounds <= 0:
            break
    return {"kills": kills, "acknowledged": acknowledged, "lost": 0}


def with_errors(url: str, rounds: int, random: Random) -> dict[str, int]:
    """Let the Nth system call fail once; the writer must notice, be unharmed, and go on."""
    revision = errors = 0
    for number in range(rounds):
        error = ERRORS[number % len(ERRORS)]
        child = Child(partial(_stubborn, url, revision + 1))
        tracer = inject(child, f"{FAILING}:error={error}:when={random.randint(1, 90)}")
        child.go()
        done = child.acknowledged()
        tracer.wait()
        assert child.status == 0, f"the writer failed after {error}"
        errors += sum(each < 0 for each in done)
        revision = check(url, max(done))
    return {"rounds": rounds, "errors": errors, "lost": 0}


def _stubborn(url: str, first: int, pipe: int) -> None:
    """Commit, and after every error look whether the old state stands, then try again."""
    json_store.SMALLEST_FOLD = 1 << 13
    store = _until_it_works(pipe, lambda: open_store(url))
    for number in range(first, first + COMMITS):
        if number > first:
            assert _until_it_works(pipe, lambda: held(store)) == expected(number - 1)
        commit = partial(store.commit, SESSION, batch(number), expect=number - 1)
        assert _until_it_works(pipe, commit) == number
        acknowledge(pipe, number)
    store.close()


def _until_it_works(pipe: int, attempt: Callable[[], T]) -> T:
    """Repeat what fails with a StoreError; a commit that had arrived would now be a conflict."""
    while True:
        try:
            return attempt()
        except StoreError as error:
            if isinstance(error, StoreBusyError) or not error.hint:
                raise
            acknowledge(pipe, -1)


if __name__ == "__main__":
    kinds = {each.__name__: each for each in (at_random_moments, at_system_calls, with_errors)}
    kind, place, count, seed = sys.argv[1:5]
    print(json.dumps(kinds[kind](place, int(count), Random(int(seed)))))
