"""What is read of a session belongs together, whoever writes to it meanwhile."""

from __future__ import annotations

import pytest

from ctxgc.errors import InputError, StoreBusyError
from ctxgc.stores import (
    COLLECTIONS,
    MemoryStore,
    Put,
    consistent_read,
    copy_sessions,
    export_entries,
)
from ctxgc.stores.concurrency import TRIES
from ctxgc.stores.export import session_documents
from tests.stores.between import Between


def _write(store: MemoryStore) -> int:
    """Write the same number into every collection."""
    number = store.revision("a") + 1
    return store.commit("a", [Put(name, "k", {"text": f"{number}"}) for name in COLLECTIONS])


@pytest.fixture
def store() -> Between:
    made = Between()
    _write(made)
    made.happens(lambda: _write(made), 3)
    return made


def _numbers(store: MemoryStore) -> set[str]:
    return {doc["text"] for name in COLLECTIONS for _, doc in store.load("a", name)}


def test_an_export_holds_one_moment(store: Between) -> None:
    assert {entry.doc["text"] for entry in export_entries(store, mask=False)} == {"4"}


def test_a_copy_holds_one_moment(store: Between) -> None:
    target = MemoryStore()
    copy_sessions(store, target)
    assert _numbers(target) == {"4"}


def test_a_session_that_is_never_left_alone_is_a_typed_error(store: Between) -> None:
    store.happens(lambda: _write(store), TRIES * len(COLLECTIONS))
    with pytest.raises(StoreBusyError, match="every time it was read"):
        session_documents(store, "a")
    assert _numbers(store) == {str(TRIES * len(COLLECTIONS) + 1)}


def test_what_fails_while_others_write_is_read_again_and_other_failures_are_told(
    store: Between,
) -> None:
    def read() -> str:
        if store.revision("a") < 3:
            _write(store)
            raise KeyError("half of it is missing")
        if store.revision("a") == 3:
            raise InputError("this is wrong")
        return "never"

    with pytest.raises(InputError, match="this is wrong"):
        consistent_read(store, "a", read)
