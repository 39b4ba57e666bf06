from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import InputError
from ctxgc.tokens import CountingCache


class Tally:
    """A counter that remembers what it was asked."""

    name = "tally"
    exact = True

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def count(self, text: str) -> int:
        self.asked[text] += 1
        return len(text)


@given(st.lists(st.text(max_size=100)))
def test_the_same_text_is_counted_once(texts: list[str]) -> None:
    tally = Tally()
    cache = CountingCache(tally)
    assert [cache.count(text) for text in texts] == [len(text) for text in texts]
    assert tally.asked == Counter(set(texts))


def test_long_texts_are_told_apart_and_counted_once() -> None:
    tally = Tally()
    cache = CountingCache(tally)
    texts = ["x" * 1000, "x" * 1001, "\ud800" * 1000, "x" * 999 + "y"]
    assert [cache.count(text) for text in texts * 3] == [1000, 1001, 1000, 1000] * 3
    assert set(tally.asked.values()) == {1}


def test_what_was_asked_longest_ago_is_forgotten_first() -> None:
    tally = Tally()
    cache = CountingCache(tally, max_texts=2)
    for text in ["a", "b", "a", "c", "a", "b"]:
        cache.count(text)
    assert tally.asked == {"a": 1, "b": 2, "c": 1}
    assert len(cache) == 2


def test_long_texts_are_not_kept() -> None:
    cache = CountingCache(Tally())
    cache.count("x" * 100_000)
    assert [len(key) for key in cache._counts] == [16]


def test_threads_that_ask_for_one_text_cause_one_count() -> None:
    tally = Tally()
    cache = CountingCache(tally)
    start = threading.Barrier(8)

    def ask(_: int) -> list[int]:
        start.wait()
        return [cache.count(str(number) * 50) for number in range(200)]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert answers == [[len(str(number)) * 50 for number in range(200)]] * 8
    assert set(tally.asked.values()) == {1}


def test_a_failed_count_is_not_remembered() -> None:
    class Fails(Tally):
        def count(self, text: str) -> int:
            super().count(text)
            raise RuntimeError("no")

    fails = Fails()
    cache = CountingCache(fails)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            cache.count("a")
    assert fails.asked == {"a": 2}


def test_it_speaks_for_the_counter_it_asks() -> None:
    cache = CountingCache(Tally())
    assert (cache.name, cache.exact) == ("tally", True)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="max_texts must be at least 1, got 0"):
        CountingCache(Tally(), max_texts=0)
    with pytest.raises(InputError, match="text must be a string"):
        CountingCache(Tally()).count(b"bytes")  # type: ignore[arg-type]
