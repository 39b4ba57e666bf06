from __future__ import annotations

from pathlib import Path

import pytest

from ctxgc.errors import InputError, StoreError
from ctxgc.stores import COLLECTIONS, MemoryStore, Put, Store, copy_sessions
from ctxgc.stores.json_store import JsonStore
from tests.stores.places import segment


def _filled() -> MemoryStore:
    store = MemoryStore()
    for name in ("a", "\ud800/.."):
        puts = [
            Put(each, key, segment(f"{name} {key}", key)) for each in COLLECTIONS for key in "zay"
        ]
        store.commit(name, puts)
        store.commit(name, [Put("segments", "z", segment("changed", "z"))])
    return store


def _all(store: Store) -> dict[str, object]:
    return {
        info.session_id: [store.load(info.session_id, name) for name in COLLECTIONS]
        for info in store.sessions()
    }


def test_sessions_move_to_every_kind_of_store_and_back(store: Store, tmp_path: Path) -> None:
    source, exported = _filled(), JsonStore(tmp_path / "export.json")
    assert copy_sessions(source, store) == {"a": 18, "\ud800/..": 18}
    copy_sessions(store, exported)
    exported.close()
    again = JsonStore(tmp_path / "export.json")
    assert _all(store) == _all(again) == _all(source)
    assert [hit.key for hit in again.search("changed")] == ["z", "z"]


def test_chosen_sessions_are_copied_alone() -> None:
    target = MemoryStore()
    copy_sessions(_filled(), target, ["a"])
    assert [info.session_id for info in target.sessions()] == ["a"]


def test_a_session_that_is_there_already_is_kept_unless_it_may_be_replaced() -> None:
    source, target = _filled(), MemoryStore()
    target.commit("a", [Put("state", "mine", {})])
    with pytest.raises(StoreError, match="already"):
        copy_sessions(source, target)
    assert _all(target) == {"a": [[], [], [], [], [], [("mine", {})]]}
    copy_sessions(source, target, replace=True)
    assert _all(target) == _all(source)


def test_an_unknown_session_is_refused() -> None:
    with pytest.raises(InputError, match="no session 'b'"):
        copy_sessions(_filled(), MemoryStore(), ["b"])
