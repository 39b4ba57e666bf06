from __future__ import annotations

from collections.abc import Sequence

import pytest

from ctxgc.errors import InputError, StoreBusyError, StoreError
from ctxgc.stores import MemoryStore, Put, Store, Write, migrate_sessions, session_digest
from ctxgc.stores.transfer import MigrationResult
from tests.stores.places import NAMES, fill, segment


class Failing(MemoryStore):
    """Takes a few commits, and then no more."""

    left = 1

    def commit(self, session_id: str, writes: Sequence[Write], *, expect: int | None = None) -> int:
        if not self.left:
            raise StoreError("the disk is full")
        self.left -= 1
        return super().commit(session_id, writes, expect=expect)


def digests(store: Store) -> dict[str, str]:
    return {info.session_id: session_digest(store, info.session_id) for info in store.sessions()}


def test_every_store_gives_and_takes_sessions_byte_for_byte(store: Store) -> None:
    source, last = MemoryStore(), MemoryStore()
    fill(source)
    known = digests(source)
    expected = MigrationResult(copied=dict.fromkeys(NAMES, 18), present=(), digests=known)
    assert migrate_sessions(source, store) == expected
    assert migrate_sessions(store, last) == expected
    assert digests(last) == digests(store) == known
    assert [info.revision for info in source.sessions()] == [2, 2]
    again = migrate_sessions(source, store)
    assert again == MigrationResult(copied={}, present=tuple(sorted(NAMES)), digests=known)


def test_a_migration_that_broke_off_goes_on() -> None:
    source, target = MemoryStore(), Failing()
    fill(source)
    with pytest.raises(StoreError, match="full"):
        migrate_sessions(source, target)
    assert [info.session_id for info in target.sessions()] == ["a"]
    target.left = 9
    done = migrate_sessions(source, target)
    assert (list(done.copied), done.present) == (["\ud800/..\x00"], ("a",))
    assert digests(target) == digests(source)


def test_another_session_of_the_same_name_is_replaced_only_on_purpose() -> None:
    source, target = MemoryStore(), MemoryStore()
    fill(source)
    target.commit("\ud800/..\x00", [Put("segments", "mine", segment("mine"))])
    before = digests(target)
    with pytest.raises(StoreError, match="another session"):
        migrate_sessions(source, target)
    assert digests(target) == before
    migrate_sessions(source, target, replace=True)
    assert digests(target) == digests(source)


def test_one_session_can_go_alone_and_an_unknown_one_cannot() -> None:
    source, target = MemoryStore(), MemoryStore()
    fill(source)
    told: list[tuple[int, int]] = []
    migrate_sessions(source, target, ["a"], progress=lambda *now: told.append(now))
    assert list(digests(target)) == ["a"]
    assert told == [(1, 1)]
    with pytest.raises(InputError, match="no session 'b'"):
        migrate_sessions(source, target, ["b"])


def test_a_session_that_is_written_to_meanwhile_is_noticed() -> None:
    source, target = MemoryStore(), MemoryStore()
    fill(source, ("a",))

    def write(*_: int) -> None:
        source.commit("a", [Put("events", "late", {})])

    with pytest.raises(StoreBusyError, match="was written to while it was copied"):
        migrate_sessions(source, target, progress=write)
    done = migrate_sessions(source, target, replace=True)
    assert done.digests == digests(source) == digests(target)
