from __future__ import annotations

from pathlib import Path

import pytest

from ctxgc.errors import ConfigError
from ctxgc.stores import DEFAULT_URL, MemoryStore, Store, open_store
from ctxgc.stores.json_store import JsonStore
from ctxgc.stores.sqlite_store import SqliteStore


def test_each_scheme_opens_its_store(tmp_path: Path) -> None:
    kinds = {
        "memory:": MemoryStore,
        f"json:{tmp_path}/a.json": JsonStore,
        f"json://{tmp_path}/a.json": JsonStore,
        f"sqlite:{tmp_path}/a.db": SqliteStore,
        f"sqlite:///{tmp_path}/a.db": SqliteStore,
    }
    opened = {url: open_store(url) for url in kinds}
    assert {url: type(store) for url, store in opened.items()} == kinds
    assert all(isinstance(store, Store) for store in opened.values())


def test_an_open_store_is_returned_as_it_is() -> None:
    store = MemoryStore()
    assert open_store(store) is store


def test_the_default_is_the_file_of_the_seed() -> None:
    assert DEFAULT_URL == "json:artifacts/context_stash.json"


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("sqlight:x", 'did you mean "sqlite"?'),
        ("postgre://x", 'did you mean "postgres"?'),
        ("stash.json", "did you mean 'json:stash.json' or 'sqlite:stash.json'?"),
        ("sqlite:", "sqlite:PATH"),
    ],
)
def test_a_wrong_url_is_refused_with_the_nearest_right_one(url: str, hint: str) -> None:
    with pytest.raises(ConfigError) as error:
        open_store(url)
    assert error.value.hint == hint


def test_two_memory_stores_are_two() -> None:
    assert open_store("memory:") is not open_store("memory:")
