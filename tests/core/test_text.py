"""Texts: read once, line by line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import Names, Text, is_line, is_word
from ctxgc.core.text import LONG_LINE, bare_line, is_identifier, tokens
from tests.collector.agent import view_of

TEXTS = st.one_of(
    st.text(max_size=300),
    st.text(alphabet="ab_.:/ \n→1", max_size=600),
    st.builds(view_of, st.integers(0, 2), st.integers(0, 9), st.integers(0, 12)),
    st.text(alphabet="x, ", min_size=300, max_size=900),
)


@given(TEXTS)
def test_all_lines_with_their_ends_are_the_text(said: str) -> None:
    text = Text(said)
    assert text.passage(0, len(text.lines)) == f"{said}\n"
    assert text.size == len(said)
    assert "".join(text.lines) == said.replace("\n", "")


@given(TEXTS)
def test_the_names_are_those_of_each_line_taken_by_itself(said: str) -> None:
    text = Text(said)
    for line, names in zip(text.lines, text.line_names, strict=True):
        plain = {t for t in tokens(line) if ":" not in t and len(t) >= 4 and is_identifier(t)}
        assert plain <= names
    assert text.names == frozenset().union(*text.line_names)
    assert text.words == frozenset().union(*text.line_words)


def test_a_place_in_a_file_names_the_file() -> None:
    assert Text("see src/load.go:12 and src/load.go:40:7").names == {"src/load.go"}


def test_plain_words_count_from_seven_letters_on_in_lower_case() -> None:
    assert Text("The Harvest was meagre, harvests vary").words == {"harvest", "harvests"}


def test_the_number_that_a_viewer_put_in_front_says_nothing() -> None:
    assert {bare_line(line) for line in ("  12→ x = 1", "12\tx = 1", "12: x = 1", "x = 1 ")} == {
        "x = 1"
    }
    text = Text("   7→return the_long_value_of(it)\nreturn the_long_value_of(it)\nshort")
    assert text.keys == ["\nreturn the_long_value_of(it)", "\nreturn the_long_value_of(it)", ""]
    assert [text.is_numbered(line) for line in range(3)] == [True, False, False]
    assert LONG_LINE == 20


@given(TEXTS)
def test_a_text_read_at_once_holds_what_its_lines_hold(said: str) -> None:
    at_once, by_lines = Text(said), Text(said)
    assert at_once.things == frozenset().union(*by_lines.line_things)
    assert by_lines.things == at_once.things


@given(TEXTS)
def test_a_thing_is_a_name_a_word_or_a_line(said: str) -> None:
    text = Text(said)
    assert {t for t in text.things if is_line(t)} == text.line_keys
    assert {t for t in text.things if is_word(t) and not is_line(t)} == text.words
    assert text.things - text.line_keys - text.words == text.names


@given(st.lists(TEXTS, max_size=3))
def test_texts_that_are_joined_hold_what_each_of_them_holds(said: list[str]) -> None:
    texts = [Text(each) for each in said]
    joined = Text.joined(texts)
    assert joined.lines == [line for text in texts for line in text.lines]
    assert joined.line_things == [things for text in texts for things in text.line_things]
    assert joined.things == frozenset().union(*(text.things for text in texts))


def test_the_vocabulary_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxgc.core.text._MOST_TOKENS", 4)
    names = Names()
    found = [names.of(f"value_{n} value_{n + 1}") for n in range(20)]
    assert found == [{f"value_{n}", f"value_{n + 1}"} for n in range(20)]
    assert len(names) <= 4
