"""The newest of many keys, by place and not by when they came back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core.recent import Newest

PLACES = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=2), st.integers(0, 40), max_size=20
)


def test_what_comes_back_stands_where_it_stood() -> None:
    newest = Newest()
    for place, key in enumerate("abcde"):
        newest.put(key, place)
    newest.discard("b")
    newest.put("b", 1)
    assert (list(newest.last(3)), list(newest.last(9))) == (list("edc"), list("edcba"))


def test_a_key_that_is_there_keeps_its_place() -> None:
    newest = Newest()
    newest.put("a", 1)
    newest.put("b", 2)
    newest.put("a", 3)
    assert (list(newest.last(2)), newest.place("a"), len(newest)) == (["b", "a"], 1, 2)


def test_none_are_asked_for_and_none_are_given() -> None:
    newest = Newest()
    newest.put("a", 1)
    assert (list(newest.last(0)), list(newest.last(-1)), "a" in newest) == ([], [], True)


@given(PLACES, st.lists(st.integers(0, 19)), st.integers(0, 25))
def test_the_last_are_those_that_sorting_finds(
    places: dict[str, int], gone: list[int], count: int
) -> None:
    newest, keys = Newest(), list(places)
    for key, place in places.items():
        newest.put(key, place)
    for key in {keys[n % len(keys)] for n in gone} if keys else ():
        newest.discard(key)
        del places[key]
    found = list(newest.last(count))
    assert [places[key] for key in found] == sorted(places.values(), reverse=True)[:count]
    assert len(set(found)) == len(found) == min(count, len(newest))
