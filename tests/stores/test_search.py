"""Ranking, filters and fallbacks, the same in every store."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from ctxgc.errors import InputError
from ctxgc.stores import (
    Drop,
    Put,
    SearchFilters,
    Store,
    postgres_documents,
    search,
    search_words,
    sqlite_documents,
    tables,
)
from ctxgc.stores.search import Candidate
from tests.examples import one_in
from tests.stores.places import KINDS, Place, make_place, segment

TEXTS = {
    "s1": {
        "a": "the cat sat on the mat",
        "b": "the dog and the cat ran, and the cat hid from the dog",
        "c": "parse_config reads src/auth/login.py",
        "d": "parseConfig failed: login refused",
    },
    "s2": {"a": "cat", "e": "a bird sang", "f": "the config of the bird"},
}


def _fill(store: Store, texts: dict[str, dict[str, str]] = TEXTS) -> None:
    for session, docs in texts.items():
        puts = [Put("segments", key, segment(text, key)) for key, text in docs.items()]
        store.commit(session, puts)


def _found(store: Store, query: str, **options: Any) -> list[str]:
    return [f"{hit.session_id}.{hit.key}" for hit in store.search(query, **options)]


def test_a_hit_carries_the_whole_document_and_its_score(store: Store) -> None:
    _fill(store)
    (hit,) = store.search("bird sang", session_id="s2")
    assert (hit.session_id, hit.key, hit.doc) == ("s2", "e", segment("a bird sang", "e"))
    assert hit.score > 0


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("cat", ["s2.a", "s1.b", "s1.a"]),
        ("CAT the", ["s1.b", "s1.a"]),
        ("parse_config", ["s1.d", "s1.c"]),
        ("ParseConfig login.py", ["s1.c"]),
        ("auth/login", ["s1.c"]),
        ("config bird", ["s2.f"]),
        ("sang zebra", ["s2.e"]),
        ("zebra", []),
        ("", []),
        (" \0 \ud800 ?!", []),
    ],
)
def test_better_matches_come_first(store: Store, query: str, found: list[str]) -> None:
    _fill(store)
    assert _found(store, query) == found


@pytest.mark.parametrize(
    "query",
    [
        '"', "'", "cat OR", "NEAR(cat", "cat*", "-cat", "^cat", "terms:cat", "cat AND NOT dog", "%", "{cat}",
        "'); DROP TABLE documents; --", "cat " * 5_000, "\\", "=s1", "cat\0dog", "%d " * 999 % (*range(999),),
    ],
)  # fmt: skip
def test_no_query_is_an_operator_or_an_error(store: Store, query: str) -> None:
    _fill(store)
    assert all(hit.score > 0 for hit in store.search(query))
    assert _found(store, "sang") == ["s2.e"]


def test_search_stays_inside_its_session(store: Store) -> None:
    _fill(store)
    assert _found(store, "cat", session_id="s2") == ["s2.a"]
    assert _found(store, "cat", session_id="unknown") == []


def test_other_sessions_do_not_change_the_score(place: Place) -> None:
    store = place.open()
    _fill(store, {"s1": TEXTS["s1"]})
    alone = store.search("cat the", session_id="s1")
    _fill(store, {"s2": {str(n): "the cat the cat" for n in range(50)}})
    assert store.search("cat the", session_id="s1") == alone


def test_a_limit_keeps_the_best(store: Store) -> None:
    _fill(store)
    assert _found(store, "cat", limit=1) == ["s2.a"]
    for limit in (0, -1):
        with pytest.raises(InputError, match="limit"):
            store.search("cat", limit=limit)


def test_equals_stand_in_the_order_of_session_and_key(store: Store) -> None:
    _fill(store, {name: dict.fromkeys("zay", "same words") for name in ("t", "s")})
    assert _found(store, "words") == ["s.a", "s.y", "s.z", "t.a", "t.y", "t.z"]


def test_names_paths_and_tags_are_searched_too(store: Store) -> None:
    docs = {
        "n": segment("x", "n", name="deploy notes"),
        "p": segment("x", "p", file_path="src/billing.py"),
        "t": segment("x", "t", tags=["release-42"]),
    }
    store.commit("a", [Put("segments", key, doc) for key, doc in docs.items()])
    assert [_found(store, query) for query in ("deploy", "billing.py", "release")] == [
        ["a.n"],
        ["a.p"],
        ["a.t"],
    ]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"type": "log"}, "bc"),
        ({"tier": "working"}, "c"),
        ({"file_path": "src/a.py"}, "ab"),
        ({"file_path": "a.py"}, ""),
        ({"task_id": "T1", "type": "log"}, "b"),
        ({"tags": ("red", "blue")}, "ac"),
        ({"tags": ("green",)}, ""),
        ({"created_after": datetime(2026, 1, 2, tzinfo=UTC)}, "bc"),
        ({"created_before": datetime(2026, 1, 2, tzinfo=UTC)}, "ab"),
        ({"created_after": datetime(2026, 1, 3, 0, 0, 1, tzinfo=UTC)}, ""),
        ({}, "abcd"),
    ],
)
def test_filters_narrow_the_search(store: Store, filters: dict[str, Any], found: str) -> None:
    docs = {
        "a": {"file_path": "src/a.py", "tags": ["red"], "created_at": "2026-01-01T00:00:00Z"},
        "b": {"file_path": "src/a.py", "type": "log", "task_id": "T1", "created_at": "2026-01-02T00:00:00"},
        "c": {"type": "log", "tier": "working", "tags": ["blue"], "created_at": "2026-01-03T02:00:00+02:00"},
        "d": {"created_at": None},
    }  # fmt: skip
    store.commit(
        "s", [Put("segments", key, segment("needle", key, **doc)) for key, doc in docs.items()]
    )
    hits = store.search("needle", filters=SearchFilters(**filters))
    assert sorted(hit.key for hit in hits) == sorted(found)


def test_a_filter_time_without_a_zone_is_refused(store: Store) -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    with pytest.raises(InputError, match="created_after"):
        store.search("x", filters=SearchFilters(created_after=naive))


def test_search_follows_every_change(place: Place) -> None:
    store, other = place.open(), place.open()
    store.commit(
        "a", [Put("segments", "k", segment("red fox")), Put("state", "k", {"text": "red"})]
    )
    assert _found(other, "red") == ["a.k"]
    store.commit("a", [Put("segments", "k", segment("red fox", tier="working"))])
    assert _found(other, "red", filters=SearchFilters(tier="stashed")) == []
    assert _found(other, "red", filters=SearchFilters(tier="working")) == ["a.k"]
    store.commit("a", [Put("segments", "k", segment("blue fox"))])
    assert [_found(other, query) for query in ("red", "blue", "fox")] == [[], ["a.k"], ["a.k"]]
    store.commit("a", [Drop("segments", "k")])
    assert _found(other, "fox") == []


def test_of_too_many_matches_the_newest_are_ranked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (tables, postgres_documents, search, sqlite_documents):
        monkeypatch.setattr(module, "CANDIDATES", 3)
    _fill(store, {"s": {key: f"fox {'fox ' * n}" for n, key in enumerate("edcba")}})
    assert sorted(_found(store, "fox")) == ["s.a", "s.b", "s.c"]
    _fill(store, {"t": {"rare": "zebra"}, "u": dict.fromkeys("xyz", "fox")})
    assert _found(store, "zebra fox")[0] == "t.rare"


def bm25(
    corpus: dict[tuple[str, str], str], query: str, k1: float = 1.2, b: float = 0.75
) -> list[Any]:
    """Rank by the book: all segments, no index, no shortcuts."""
    split = {name: search_words(text) for name, text in corpus.items()}
    asked = list(dict.fromkeys(search_words(query)))
    average = max(sum(map(len, split.values())), 1) / max(len(split), 1)
    counts = {word: sum(word in said for said in split.values()) for word in asked}
    chosen = [name for name, said in split.items() if asked and all(w in said for w in asked)]
    chosen = chosen or [name for name, said in split.items() if any(w in said for w in asked)]

    def score(name: tuple[str, str]) -> float:
        said = split[name]
        return sum(
            math.log(1 + (len(split) - counts[w] + 0.5) / (counts[w] + 0.5))
            * said.count(w) * (k1 + 1) / (said.count(w) + k1 * (1 - b + b * len(said) / average))
            for w in asked
        )  # fmt: skip

    return sorted(((round(score(name), 9), name) for name in chosen), key=lambda r: (-r[0], r[1]))


_words = st.sampled_from(
    [
        "red",
        "fox",
        "foxTrot",
        "fox_trot",
        "blue",
        "the",
        "a",
        "über",
        "数据",
        "x1",
        "1e2",
        "read_file",
    ]
)
_texts = st.lists(_words, max_size=12).map(" ".join)
_corpora = st.dictionaries(
    st.tuples(st.sampled_from(["s", "t"]), st.sampled_from("abcdef")), _texts, max_size=10
)


@one_in(
    3,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(corpus=_corpora, query=_texts, few=st.sampled_from([0, 3, search.FEW]))
def test_every_store_ranks_by_the_book(
    store: Store, corpus: dict[tuple[str, str], str], query: str, few: int
) -> None:
    for session in ("s", "t"):
        store.drop_session(session)
        docs = {key: text for (name, key), text in corpus.items() if name == session}
        _fill(store, {session: docs})
    for session in (None, "s"):
        inside = {name: text for name, text in corpus.items() if session in {None, name[0]}}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search, "FEW", few)
            hits = store.search(query, session_id=session, limit=99)
            assert store.search(query, session_id=session, limit=2) == hits[:2]
        ranked = [(round(hit.score, 9), (hit.session_id, hit.key)) for hit in hits]
        assert sorted(ranked, key=lambda r: (-r[0], r[1])) == bm25(inside, query)


def test_all_stores_give_the_same_hits_in_the_same_order(
    tmp_path: Any, empty_database: Any
) -> None:
    places = [make_place(kind, tmp_path, empty_database) for kind in KINDS]
    stores = [place.open() for place in places]
    pool = [
        "error",
        "config",
        "read_file",
        "parseConfig",
        "login",
        "session",
        "token",
        "cache",
        "the",
        "of",
        "42",
        "src/auth.py",
    ]
    random = Random(7)
    corpus = {
        name: {f"k{i}": " ".join(random.choices(pool, k=1 + i % 9)) for i in range(60)}
        for name in ("s0", "s1", "s2")
    }
    for store in stores:
        _fill(store, corpus)
    for query in ("error", "the config", "parse_config login", "auth.py", "42 nothing error"):
        for session in (None, "s1"):
            first, *others = [store.search(query, session_id=session, limit=25) for store in stores]
            assert first
            assert others == [first] * len(others)
    for place in places:
        place.close()


def test_the_work_of_a_search_is_bounded() -> None:
    assert (search.CANDIDATES, search.COMMON) == (1_000, 10_000)


class _Watched(tables.SessionIndexes):
    """Notes which words are looked up."""

    def __init__(self, texts: list[str]) -> None:
        one = tables.SessionIndex("s")
        for number, text in enumerate(texts):
            one.put(str(number), number, segment(text))
        super().__init__([one])
        self.asked: list[tuple[str, ...]] = []

    def newest(self, asked: search.Query) -> list[Candidate]:
        self.asked.append(asked.words)
        return super().newest(asked)


@pytest.mark.parametrize(
    ("texts", "asked"),
    [
        (["the fox", "the hare", *["the"] * 300], [("fox",)]),
        (["fox", "hare the", *["the"] * 300], [("fox",), ("the",)]),
        (["fox"] * 20 + ["the"] * 300, [("fox",)]),
        (["fox the"] * 300, [("fox", "the")]),
        (["fox"] * 300 + ["the"] * 400, [("fox", "the"), ("fox",), ("the",)]),
    ],
    ids=["rare word with the rest", "too few with the rare word", "enough with it", "common words",
         "common words apart"],
)  # fmt: skip
def test_common_words_are_looked_up_only_where_they_can_matter(
    texts: list[str], asked: list[tuple[str, ...]]
) -> None:
    source = _Watched(texts)
    assert search.rank(source, search.parse_query("fox the"), 10)
    assert source.asked == asked
