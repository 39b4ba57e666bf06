"""A fresh place for every test that asks for one, in each kind of store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxgc.stores import Store
from tests.stores.places import KINDS, Place, make_place


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty store of each kind."""
    made = make_place(request.param, tmp_path, lambda: "")
    yield made
    made.close()


@pytest.fixture
def store(place: Place) -> Store:
    """A handle of an empty store of each kind."""
    return place.open()
