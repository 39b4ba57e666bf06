"""The Postgres server is killed in the middle of transactions, and comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from random import Random

import pytest

from ctxgc.errors import StoreError
from ctxgc.stores import Store, open_store
from ctxgc.stores.postgres_store import PostgresStore
from tests.crash.workload import SESSION, batch, check
from tests.stores.server import PATIENCE, OwnServer, own_server, patiently

WAIT = 10.0
"""How many seconds a writer waits for a connection, which is for nothing while the server is gone."""


@pytest.fixture
def server() -> Iterator[OwnServer]:
    """A server that may be killed."""
    with own_server() as own:
        yield own


class Writer(threading.Thread):
    """Commits until the server is gone."""

    def __init__(self, store: Store, first: int) -> None:
        super().__init__()
        self.store = store
        self.acknowledged = first - 1
        self.at_work = threading.Event()
        self.error: StoreError | None = None

    def run(self) -> None:
        try:
            while True:
                number = self.acknowledged + 1
                self.store.commit(SESSION, batch(number), expect=number - 1)
                self.acknowledged = number
                self.at_work.set()
        except StoreError as error:
            self.error = error


def _rounds(server: OwnServer, rounds: int) -> None:
    store, random, revision = PostgresStore(server.url(), timeout=WAIT), Random(1), 0
    commits = 0
    for _ in range(rounds):
        writer = Writer(store, revision + 1)
        writer.start()
        assert writer.at_work.wait(PATIENCE), writer.error
        time.sleep(random.uniform(0.05, 0.3))
        server.kill()
        writer.join(PATIENCE)
        assert writer.error is not None
        assert writer.error.hint
        commits += writer.acknowledged - revision
        server.start()
        patiently(lambda: open_store(server.url()).close(), StoreError)
        revision = check(server.url(), writer.acknowledged)
        assert patiently(lambda: store.revision(SESSION), StoreError) == revision
    store.close()
    print(f"postgres: {rounds} kills of the server, {commits} commits acknowledged, 0 lost")
    assert commits >= rounds


def test_a_killed_server_loses_nothing_and_is_found_again(server: OwnServer) -> None:
    _rounds(server, 2)


@pytest.mark.deep
def test_a_server_killed_many_times_loses_nothing(server: OwnServer) -> None:
    _rounds(server, 40)
