"""A store after a fork: parent and child go on side by side, and nothing is lost."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable

import pytest

from ctxgc.stores import Put, Store
from ctxgc.stores.concurrency import ForkSafe
from tests.stores.places import Place


class Child:
    """A forked process that does one thing after the other, each when it is told to."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._orders, self._answers = os.pipe(), os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the test runner has threads
            self._pid = os.fork()
        if not self._pid:
            self._obey(steps)

    def step(self) -> bool:
        """Let it do the next thing, and tell whether that went well."""
        os.write(self._orders[1], b"!")
        return os.read(self._answers[0], 1) == b"y"

    def end(self) -> None:
        """Wait until it is gone."""
        os.waitpid(self._pid, 0)
        for end in (*self._orders, *self._answers):
            os.close(end)

    def _obey(self, steps: tuple[Callable[[], object], ...]) -> None:
        for step in steps:
            os.read(self._orders[0], 1)
            try:
                step()
                os.write(self._answers[1], b"y")
            except BaseException:  # noqa: BLE001 (a child must not go on as a second test runner)
                os.write(self._answers[1], b"n")
        os._exit(0)


def _write(store: Store, key: str) -> int:
    return store.commit("a", [Put("state", key, {"by": key})])


def _kept(place: Place) -> set[str]:
    return {key for key, _ in place.open().load("a", "state")}


shared = pytest.mark.parametrize("place", ["json", "sqlite", "postgres"], indirect=True)


@shared
def test_what_parent_and_child_write_in_turns_stays(place: Place) -> None:
    store = place.open()
    _write(store, "before")
    child = Child(lambda: _write(store, "child 1"), lambda: _write(store, "child 2"))
    _write(store, "parent 1")
    assert child.step()
    _write(store, "parent 2")
    assert child.step()
    child.end()
    assert store.revision("a") == 5
    assert _kept(place) == {"before", "parent 1", "child 1", "parent 2", "child 2"}


@shared
@pytest.mark.parametrize("anew", [False, True])
def test_what_a_child_writes_after_its_parent_closed_the_store_stays(
    place: Place, anew: bool
) -> None:
    store = place.open()
    _write(store, "parent")
    mine: list[Store] = []
    child = Child(
        lambda: mine.append(place.open() if anew else store),
        lambda: _write(mine[0], "child 1"),
        lambda: _write(mine[0], "child 2"),
    )
    assert child.step()
    assert child.step()
    store.close()
    assert child.step()
    assert _kept(place) == {"parent", "child 1", "child 2"}
    child.end()


@shared
def test_a_child_that_closes_the_store_does_not_close_it_for_its_parent(place: Place) -> None:
    store = place.open()
    _write(store, "parent 1")
    child = Child(store.close)
    assert child.step()
    child.end()
    _write(store, "parent 2")
    assert _kept(place) == {"parent 1", "parent 2"}


class _Asked(ForkSafe):
    """Tells when a fork asks it to hold still."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    def before_fork(self) -> None:
        self.asked.set()
        super().before_fork()

    def work(self, at_work: threading.Event) -> None:
        with self._lock:
            at_work.set()
            self.asked.wait(10)

    def use(self) -> None:
        assert self._lock.acquire(blocking=False)


def test_a_fork_waits_for_the_threads_at_work_so_that_the_child_is_not_locked_out() -> None:
    one, at_work = _Asked(), threading.Event()
    thread = threading.Thread(target=one.work, args=[at_work])
    thread.start()
    at_work.wait(10)
    child = Child(one.use)
    assert child.step()
    child.end()
    thread.join()
    one.use()
