"""Texts: read once, line by line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core.identifiers import is_identifier, tokens
from ctxgc.thrift.texts import LONG_LINE, Text, bare_line
from tests.thrift.agent import view_of

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
    assert text.keys == ["return the_long_value_of(it)", "return the_long_value_of(it)", ""]
    assert [text.is_numbered(line) for line in range(3)] == [True, False, False]
    assert LONG_LINE == 20
