"""Lines: what stands in them, and how a text falls into pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core.text import bare_line, pieces_of, words_in


@given(st.text(alphabet="ab ,\n", max_size=900))
def test_the_pieces_with_their_ends_are_the_text(text: str) -> None:
    pieces, ends = pieces_of(text)
    assert "".join(p + e for p, e in zip(pieces, ends, strict=True)) == f"{text}\n"


def test_the_number_of_a_viewer_is_no_part_of_a_line() -> None:
    assert [
        bare_line(line) for line in ("   12→\tdef run():", "12\tdef run():", "  def run(): ")
    ] == ["def run():"] * 3


def test_long_plain_words_count_in_any_spelling() -> None:
    assert words_in("Checkpoint and CHECKPOINT are words, so is not") == {"checkpoint"}
