"""What every store promises, asked of each of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from ctxgc.errors import InputError, StoreBusyError
from ctxgc.stores import COLLECTIONS, Drop, Put, Store
from tests.examples import one_in
from tests.stores.places import Place, segment

HARD_TEXTS = ["", "\0", "\ud800 alone \udfff", "👩‍👩‍👧 e\u0301", "1e2", "\u2028\x85\r\n", "ß" * 99]


def test_a_new_store_is_empty(store: Store) -> None:
    assert store.sessions() == []
    assert store.revision("a") == 0
    assert [store.load("a", name) for name in COLLECTIONS] == [[]] * len(COLLECTIONS)
    assert store.get("a", "segments", "x") is None
    assert store.search("x") == []
    assert store.reports == ()


def test_a_commit_numbers_the_revisions_of_its_session(store: Store) -> None:
    puts = [Put("state", "k", {"n": 1})]
    assert [store.commit("a", puts), store.commit("a", puts), store.commit("b", puts)] == [1, 2, 1]
    assert (store.revision("a"), store.revision("b"), store.revision("c")) == (2, 1, 0)


def test_an_empty_batch_changes_nothing(store: Store) -> None:
    assert store.commit("a", []) == 0
    store.commit("a", [Put("state", "k", {})])
    assert store.commit("a", [], expect=1) == 1
    assert [info.session_id for info in store.sessions()] == ["a"]


def test_documents_come_in_the_order_of_first_insertion(store: Store) -> None:
    store.commit("a", [Put("events", key, {"k": key}) for key in "cab"])
    store.commit("a", [Put("events", "c", {"k": "new"}), Drop("events", "a"), Drop("events", "no")])
    store.commit("a", [Put("events", "a", {"k": "again"})])
    assert store.load("a", "events") == [
        ("c", {"k": "new"}),
        ("b", {"k": "b"}),
        ("a", {"k": "again"}),
    ]


def test_the_last_write_of_a_key_in_a_batch_counts(store: Store) -> None:
    batch = [Put("state", "k", {"n": 1}), Drop("state", "k"), Put("state", "k", {"n": 2})]
    assert store.commit("a", batch) == 1
    assert store.load("a", "state") == [("k", {"n": 2})]


def test_collections_and_sessions_are_apart(store: Store) -> None:
    for number, name in enumerate(COLLECTIONS):
        store.commit("a", [Put(name, "k", {"n": number})])
    store.commit("b", [Put("state", "k", {"n": "b"})])
    assert [store.get("a", name, "k") for name in COLLECTIONS] == [{"n": n} for n in range(6)]
    assert store.get("b", "segments", "k") is None


@pytest.mark.parametrize("text", HARD_TEXTS)
def test_every_text_comes_back_the_same(place: Place, text: str) -> None:
    name = text or "empty"
    docs = {"segments": segment(text, name), "state": {"v": text, text: [text, None, 1.5, True]}}
    place.open().commit(name, [Put(c, name, doc) for c, doc in docs.items()])
    other = place.open()
    assert {c: other.load(name, c) for c in docs} == {c: [(name, d)] for c, d in docs.items()}
    assert [info.session_id for info in other.sessions()] == [name]


def test_a_text_of_eight_megabytes_comes_back_the_same(place: Place) -> None:
    doc = segment("große Datei, line\n" * 460_000)
    place.open().commit("a", [Put("segments", "s", doc)])
    assert place.open().get("a", "segments", "s") == doc


def test_what_is_handed_in_or_out_can_be_changed_without_harm(store: Store) -> None:
    doc: dict[str, Any] = {"list": [1]}
    store.commit("a", [Put("state", "k", doc)])
    doc["list"].append(2)
    for seen in (store.get("a", "state", "k"), store.load("a", "state")[0][1]):
        assert seen == {"list": [1]}
        seen["list"].append(3)
    assert store.get("a", "state", "k") == {"list": [1]}


def test_a_commit_that_expects_another_revision_writes_nothing(place: Place) -> None:
    first, second = place.open(), place.open()
    first.commit("a", [Put("state", "k", {"n": 1})], expect=0)
    second.commit("a", [Put("state", "k", {"n": 2})], expect=1)
    with pytest.raises(StoreBusyError) as error:
        first.commit("a", [Put("state", "k", {"n": 3}), Put("state", "l", {})], expect=1)
    assert {k: error.value.details[k] for k in ("expected", "found")} == {"expected": 1, "found": 2}
    assert (first.load("a", "state"), first.revision("a")) == ([("k", {"n": 2})], 2)


@pytest.mark.parametrize(
    ("session_id", "write"),
    [
        ("", Put("state", "k", {})),
        ("a" * 3_000, Put("state", "k", {})),
        ("a", Put("state", "", {})),
        ("a", Put("nothing", "k", {})),  # type: ignore[arg-type]
        ("a", Put("state", "k", {"n": float("nan")})),
        ("a", Put("state", "k", {"n": {1, 2}})),
        ("a", Put("state", "k", ["no object"])),  # type: ignore[arg-type]
        ("a", Drop("state", None)),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_stored_is_refused_whole(
    store: Store, session_id: str, write: Put | Drop
) -> None:
    with pytest.raises(InputError):
        store.commit(session_id, [Put("state", "good", {}), write])
    assert store.sessions() == []


def test_an_unknown_collection_is_refused(store: Store) -> None:
    for ask in (lambda: store.load("a", "x"), lambda: store.get("a", "x", "k")):  # type: ignore[arg-type]
        with pytest.raises(InputError, match="there is no collection 'x'"):
            ask()


def test_sessions_tell_times_and_counts(store: Store) -> None:
    before = datetime.now(UTC)
    store.commit("b", [Put("segments", "x", segment("x")), Put("events", "e", {})])
    store.commit("a", [Put("state", "k", {})])
    store.commit("b", [Drop("events", "e")])
    first, second = store.sessions()
    assert (first.session_id, first.revision) == ("a", 1)
    assert second.counts == {**dict.fromkeys(COLLECTIONS, 0), "segments": 1}
    assert before <= second.created_at <= second.updated_at <= datetime.now(UTC)
    assert first.created_at == first.updated_at


def test_a_dropped_session_is_gone_for_all(place: Place) -> None:
    first, second = place.open(), place.open()
    for name in ("a", "b"):
        first.commit(name, [Put("segments", "x", segment("needle")), Put("state", "k", {})])
    second.drop_session("a")
    second.drop_session("never was")
    assert (first.revision("a"), first.load("a", "segments"), first.load("a", "state")) == (
        0,
        [],
        [],
    )
    assert [hit.session_id for hit in first.search("needle")] == ["b"]
    assert first.commit("a", [Put("state", "k", {"new": 1})], expect=0) == 1


def test_a_closed_store_can_be_closed_again_and_opened_anew(place: Place) -> None:
    store = place.open()
    store.commit("a", [Put("state", "k", {"n": 1})])
    store.close()
    store.close()
    assert place.open().get("a", "state", "k") == {"n": 1}


def test_names_that_look_like_paths_stay_names(place: Place) -> None:
    names = ["../escape", "/etc/passwd", "a/../../b", "..", "C:\\x", "'; DROP TABLE documents; --"]
    store = place.open()
    for name in names:
        store.commit(name, [Put("segments", name, segment("x", name))])
    again = place.open()
    assert sorted(info.session_id for info in again.sessions()) == sorted(names)
    assert all(again.get(name, "segments", name) == segment("x", name) for name in names)


_keys = st.sampled_from(["k", "l", "Ü/..", "\ud800", "5"])
_texts = st.sampled_from(["red fox", "blue fox_trot", "", "\0\ud83d", "Red RED"])
_puts = st.builds(
    lambda collection, key, text: Put(collection, key, segment(text, key)),
    st.sampled_from(["segments", "state", "messages"]),
    _keys,
    _texts,
)
_drops = st.builds(Drop, st.sampled_from(["segments", "state"]), _keys)
_commits = st.tuples(
    st.just("commit"),
    st.sampled_from(["a", "b"]),
    st.lists(_puts | _drops, max_size=5),
    st.sampled_from([None, 0, -1]),
)
_others = st.tuples(st.sampled_from(["reopen", "other", "drop"]), st.sampled_from(["a", "b"]))


class Model:
    """A plain dictionary that does what a store should."""

    def __init__(self) -> None:
        self.docs: dict[str, dict[str, dict[str, Any]]] = {}
        self.revisions: dict[str, int] = {}

    def commit(self, session: str, writes: list[Put | Drop]) -> int:
        if writes:
            self.revisions[session] = self.revisions.get(session, 0) + 1
        for write in writes:
            docs = self.docs.setdefault(session, {}).setdefault(write.collection, {})
            if isinstance(write, Put):
                docs[write.key] = write.doc
            else:
                docs.pop(write.key, None)
        return self.revisions.get(session, 0)

    def check(self, store: Store) -> None:
        assert {i.session_id: i.revision for i in store.sessions()} == self.revisions
        for session in ("a", "b"):
            for name in COLLECTIONS:
                wanted = list(self.docs.get(session, {}).get(name, {}).items())
                assert store.load(session, name) == wanted
        found = {(hit.session_id, hit.key) for hit in store.search("red", limit=99)}
        assert found == {
            (session, key)
            for session, docs in self.docs.items()
            for key, doc in docs.get("segments", {}).items()
            if "red" in doc["text"].lower()
        }


@one_in(
    3,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(_commits | _others, max_size=15))
def test_any_sequence_of_steps_does_what_a_dictionary_does(place: Place, steps: list[Any]) -> None:
    model, store, other = Model(), place.open(), place.open()
    for session in ("a", "b"):
        store.drop_session(session)
    for action, session, *rest in steps:
        if action == "commit":
            _commit(model, store, session, *rest)
        elif action == "reopen":
            store.close()
            store = place.open()
        elif action == "drop":
            store.drop_session(session)
            model.docs.pop(session, None)
            model.revisions.pop(session, None)
        else:
            store, other = other, store
    model.check(store)
    model.check(other)
    place.close()


def _commit(
    model: Model, store: Store, session: str, writes: list[Put | Drop], expect: int | None
) -> None:
    found = model.revisions.get(session, 0)
    if expect is None or expect == found:
        assert store.commit(session, writes, expect=expect) == model.commit(session, writes)
    else:
        with pytest.raises(StoreBusyError):
            store.commit(session, writes, expect=expect)
