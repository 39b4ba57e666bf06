"""Handles and excerpts: short, stable names, and parts of what they stand for."""

from __future__ import annotations

import pytest

from ctxgc.errors import InputError
from ctxgc.session import excerpt
from tests.session.build import filled, make

TEXT = "\n".join(f"line {n}" for n in range(1, 21))


def test_lines_are_counted_from_one() -> None:
    assert excerpt(TEXT, lines=(2, 4)) == "line 2\nline 3\nline 4"
    assert excerpt(TEXT) == TEXT
    for wrong in ((0, 3), (4, 2)):
        with pytest.raises(InputError, match="lines cannot be"):
            excerpt(TEXT, lines=wrong)


def test_a_pattern_is_literal_and_shows_what_is_around_it() -> None:
    assert excerpt(TEXT, pattern="LINE 10") == "line 8\nline 9\nline 10\nline 11\nline 12"
    assert excerpt("a.b\naxb", pattern="a.b").startswith("a.b")
    assert excerpt(TEXT, pattern="(") == ""


def test_handles_are_stable_and_differ_between_sessions() -> None:
    one, other = filled(2), filled(2)
    mine = [hit.handle for hit in one.search("request")]
    assert mine == [hit.handle for hit in one.search("request")]
    assert set(mine).isdisjoint(hit.handle for hit in other.search("request"))
    assert all(handle.startswith("h-") and len(handle) == 18 for handle in mine)


def test_a_segment_answers_to_its_id_and_its_handle() -> None:
    session = make()
    (segment_id,) = session.append({"role": "user", "content": "hello there"})
    (hit,) = session.search("hello")
    assert session.read(segment_id) == session.read(hit.handle) == "hello there"
