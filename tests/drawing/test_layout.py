"""Tables and texts in the columns of a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.drawing import (
    Column,
    Entry,
    cut,
    display_width,
    plain,
    shortened,
    terminal_bars,
    terminal_table,
    terminal_width,
    text_of,
    wrapped,
)

TEXTS = st.text("ab 漢é\u0301,.1", max_size=70)


def shown(
    columns: list[Column | str], rows: list[list[Entry]], width: int, **more: int
) -> list[str]:
    return [text_of(line).rstrip() for line in terminal_table(columns, rows, width, **more)]


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("abc", 3), ("漢字", 4), ("e\u0301", 1), ("█…", 2), ("a\u200bb", 2)],
)
def test_the_width_is_that_on_the_screen(text: str, columns: int) -> None:
    assert display_width(text) == columns


@pytest.mark.parametrize(("said", "columns"), [("80", 80), ("20", 60), ("400", 160), ("", 100)])
def test_the_width_is_that_of_the_terminal_within_reason_and_100_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, said: str, columns: int
) -> None:
    monkeypatch.setattr("sys.__stdout__", None)
    monkeypatch.setenv("COLUMNS", said)
    assert terminal_width() == columns


def test_numbers_are_aligned_right_and_texts_left() -> None:
    rows: list[list[Entry]] = [["s-1", "1,978", "3h", "a note"], ["s-22", "7", "-", "another"]]
    assert shown(["handle", "tokens", "age", "line"], rows, 80) == [
        "  handle  tokens  age  line",
        "  s-1      1,978   3h  a note",
        "  s-22         7    -  another",
    ]


def test_what_does_not_fit_is_cut_in_the_columns_that_allow_it() -> None:
    columns = [Column("id"), Column("path", least=8, keep="end"), Column("line", least=6)]
    rows: list[list[Entry]] = [["s-1", "/home/ada/shop/main.py", "def main() -> None:"]]
    assert shown(columns, rows, 40) == [
        "  id   path             line",
        "  s-1  …a/shop/main.py  def main() -> N…",
    ]


def test_a_text_to_be_kept_whole_is_wrapped() -> None:
    columns = [Column("key"), Column("meaning", least=10, keep="all")]
    assert shown(columns, [["hold", "requests after which a result is idle"]], 26) == [
        "  key   meaning",
        "  hold  requests after",
        "        which a result is",
        "        idle",
    ]


def test_a_column_of_the_highest_rank_is_left_out_first() -> None:
    columns = [Column("id"), Column("score", rank=2), Column("age", rank=1), Column("tokens")]
    rows: list[list[Entry]] = [["s-1", "0.123", "3h", "1,978"]]
    assert shown(columns, rows, 21) == ["  id   age  tokens", "  s-1   3h   1,978"]
    assert shown(columns, rows, 15) == ["  id   tokens", "  s-1   1,978"]


def test_columns_that_cannot_be_narrowed_follow_below_with_the_keys_repeated() -> None:
    columns: list[Column | str] = ["policy", "half", "bill", "strict"]
    rows: list[list[Entry]] = [["never", "fit", "1.000", "100.0"], ["ctxgc", "fit", "0.7", "99.0"]]
    assert shown(columns, rows, 22, keys=2) == [
        "  policy  half   bill",
        "  never   fit   1.000",
        "  ctxgc   fit     0.7",
        "",
        "  policy  half  strict",
        "  never   fit    100.0",
        "  ctxgc   fit     99.0",
    ]


def test_no_rows_are_no_table() -> None:
    assert terminal_table(["a"], [], 80) == []


@given(st.lists(st.lists(TEXTS, min_size=4, max_size=4), min_size=1), st.integers(60, 160))
def test_no_line_of_a_table_is_wider_than_asked(rows: list[list[Entry]], width: int) -> None:
    columns = ["first", "second", Column("third", least=4, keep="all"), Column("last", least=4)]
    lines = terminal_table(columns, rows, width)
    assert max(display_width(text_of(line)) for line in lines) <= width


@given(
    st.lists(st.tuples(TEXTS, st.floats(0, 1e6), TEXTS, TEXTS), min_size=1), st.integers(60, 160)
)
def test_no_bar_is_wider_than_asked(rows: list[tuple[str, float, str, str]], width: int) -> None:
    assert max(display_width(text_of(line)) for line in terminal_bars(rows, width)) <= width


@given(TEXTS, st.integers(4, 40))
def test_a_cut_text_fits_and_is_whole_if_it_can_be(text: str, width: int) -> None:
    flat = " ".join(text.split())
    for kept in (shortened(text, width, keep=keep) for keep in ("start", "end", "ends")):
        assert display_width(kept) <= width
        assert (kept == flat) == (display_width(flat) <= width)
    assert display_width(text_of(cut(plain(flat), width))) <= width


@given(TEXTS, st.integers(4, 40))
def test_wrapping_keeps_every_word_and_breaks_none(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert " ".join(lines).split() == text.split()
    assert all(display_width(line) <= width or " " not in line for line in lines)
