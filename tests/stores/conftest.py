"""A fresh place for every test that asks for one, in each kind of store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctxgc.stores import Store
from tests.stores.places import KINDS, Place, make_place
from tests.stores.server import fresh_database


@pytest.fixture(scope="session")
def postgres(postgres_server: str) -> Iterator[str]:
    """The address of a database that the tests of one process share."""
    with fresh_database(postgres_server) as url:
        yield url


@pytest.fixture
def empty_database(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Give the address of that database, emptied; no server is started before it is asked for."""

    def emptied() -> str:
        import psycopg  # noqa: PLC0415 (an extra)

        url: str = request.getfixturevalue("postgres")
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("DROP SCHEMA IF EXISTS ctxgc CASCADE")
        return url

    return emptied


@pytest.fixture(params=KINDS)
def place(
    request: pytest.FixtureRequest, tmp_path: Path, empty_database: Callable[[], str]
) -> Iterator[Place]:
    """An empty store of each kind."""
    made = make_place(request.param, tmp_path, empty_database)
    yield made
    made.close()


@pytest.fixture
def store(place: Place) -> Store:
    """A handle of an empty store of each kind."""
    return place.open()
