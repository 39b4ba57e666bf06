"""What is left for a store is durable at once, and in the store as soon as anybody opens it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import InputError, StoreError
from ctxgc.stores import Put, add_to_inbox, drain_inbox, inbox_of, open_store
from tests.examples import one_in

HANDLE = "h-aaaabbbbccccdddd"


def document(text: str = "build line 7 failed") -> dict[str, Any]:
    return {"segment_id": "seg-1", "text": text, "type": "log", "tier": "stashed"}


@pytest.mark.parametrize("scheme", ["json", "sqlite"])
def test_what_was_left_is_in_the_store_that_is_opened_next(tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}:{tmp_path}/stash"
    path = add_to_inbox(url, "claude-code/s1", HANDLE, document())
    assert path.is_file()
    store = open_store(url)
    assert store.load("claude-code/s1", "segments") == [("seg-1", {**document(), "handle": HANDLE})]
    assert not path.exists()
    store.close()


def test_an_open_store_takes_in_what_came_since(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/stash"
    store = open_store(url)
    add_to_inbox(url, "s", HANDLE, document())
    assert [drain_inbox(store), drain_inbox(store)] == [1, 0]
    assert [hit.key for hit in store.search("failed")] == ["seg-1"]
    store.close()


def test_a_damaged_entry_is_set_aside_and_the_others_come_in(tmp_path: Path) -> None:
    url = f"json:{tmp_path}/stash.json"
    inbox_of(url).mkdir(parents=True)
    for number, damaged in enumerate([b"{", b"[]", b'{"session_id": 1}', b"\xff\xfe"]):
        (inbox_of(url) / f"h-{number}.json").write_bytes(damaged)
    add_to_inbox(url, "s", HANDLE, document())
    store = open_store(url)
    assert [key for key, _ in store.load("s", "segments")] == ["seg-1"]
    assert sorted(p.name for p in inbox_of(url).iterdir()) == [f"h-{n}.damaged" for n in range(4)]
    store.close()


def test_what_the_store_does_not_take_stays_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"json:{tmp_path}/stash.json"
    store = open_store(url)
    path = add_to_inbox(url, "s", HANDLE, document())

    def refuse(*_: object, **__: object) -> int:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(store, "commit", refuse)
        assert drain_inbox(store) == 0
    assert path.is_file()
    assert drain_inbox(store) == 1
    store.close()


@pytest.mark.parametrize("url", ["memory:", "json:", "nothing", "ftp:x"])
def test_a_store_that_others_cannot_open_has_no_inbox(url: str) -> None:
    with pytest.raises(InputError, match="has no inbox"):
        inbox_of(url)


def test_the_inbox_of_a_server_is_among_the_users_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert inbox_of("postgresql://a/b").parent == tmp_path / "ctxgc"
    assert inbox_of("postgresql://a/b") != inbox_of("postgresql://a/c")
    assert inbox_of("postgresql://a/b") == inbox_of("postgres://me:pw@a/b?sslmode=require")


@one_in(3)
@given(st.text(st.characters(codec=None), min_size=1))
def test_every_text_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    url = f"json:{tmp_path_factory.mktemp('inbox')}/stash.json"
    add_to_inbox(url, "s", HANDLE, document(text))
    store = open_store(url)
    found = store.get("s", "segments", "seg-1")
    assert found is not None
    assert found["text"] == text
    store.close()


def test_what_two_processes_take_in_at_once_comes_in_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:{tmp_path}/stash"
    store, other = open_store(url), open_store(url)
    left = add_to_inbox(url, "s", HANDLE, document())
    kept, commit = left.read_bytes(), store.commit

    def when_the_other_has_it(*given: Any, **more: Any) -> int:
        monkeypatch.undo()
        assert drain_inbox(other) == 1
        other.commit("s", [Put("segments", "seg-1", document("changed since"))])
        return commit(*given, **more)

    monkeypatch.setattr(store, "commit", when_the_other_has_it)
    drain_inbox(store)
    left.write_bytes(kept)  # as if the other had not come to remove it yet
    drain_inbox(store)
    assert store.load("s", "segments") == [("seg-1", document("changed since"))]
    assert (store.revision("s"), left.exists()) == (2, False)
    store.close()
    other.close()


def test_a_segment_comes_in_while_others_write_to_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(f"sqlite:{tmp_path}/stash")
    add_to_inbox(store.url, "s", HANDLE, document())
    commit = store.commit

    def when_another_has_written(*given: Any, **more: Any) -> int:
        monkeypatch.undo()
        commit("s", [Put("state", "k", {})])
        return commit(*given, **more)

    monkeypatch.setattr(store, "commit", when_another_has_written)
    assert drain_inbox(store) == 1
    assert (len(store.load("s", "segments")), store.revision("s")) == (1, 2)
    store.close()
