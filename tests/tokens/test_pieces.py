from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxgc.tokens import exact
from ctxgc.tokens.exact import BLOCK_CHARS, PIECE_CHARS, load, pieces, well_formed
from tests.tokens.samples import KINDS, long_text

MEGA = 1_000_000

_fragments = st.sampled_from(
    [
        "the",
        "Word's",
        "IT'S",
        "x1",
        "42",
        ";",
        "//",
        "/",
        "{",
        "'",
        "\u5783\u573e",
        "e\u0301",
        "\u00a0",
    ]
)
_gaps = st.sampled_from(
    [" ", " ", "\n", "\n\n", "  ", "\r\n", " \n", "\n ", "\t", "\n/", ";\n/", "\n\t\n", ""]
)
_texts = st.lists(st.tuples(_fragments, _gaps), max_size=80).map(
    lambda pairs: "".join(fragment + gap for fragment, gap in pairs)
)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "PIECE_CHARS", 40)


@given(st.text(max_size=300))
def test_joined_pieces_are_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text


@pytest.mark.parametrize(
    "char", ["a", " ", "\t", "\n", "=", "0", "\u5783", "\0", "\u0301", "\U0001f600"]
)
def test_a_run_of_any_length_makes_linearly_many_small_pieces(char: str) -> None:
    made = list(pieces(char * MEGA))
    assert "".join(made) == char * MEGA
    assert max(map(len, made)) <= PIECE_CHARS
    assert len(made) <= MEGA / BLOCK_CHARS + 1


@pytest.mark.parametrize("char", ["a", " ", "\n", "="])
@pytest.mark.parametrize("before", ["x y\n", "word " * 3000])
def test_no_piece_holds_an_unbroken_run_of_two_blocks(char: str, before: str) -> None:
    made = list(pieces(before + char * 100_000 + before))
    assert max(piece.count(char * BLOCK_CHARS) for piece in made) <= 1
    assert not any(char * (2 * BLOCK_CHARS) in piece for piece in made)


@pytest.mark.parametrize("kind", KINDS)
def test_ordinary_text_is_cut_no_more_than_its_length_demands(kind: str) -> None:
    made = list(pieces(long_text(kind, 300_000)))
    assert len(made) == 5


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@settings(max_examples=300)
@given(text=_texts)
def test_a_cut_at_a_break_does_not_change_the_count(encoding: str, text: str) -> None:
    encode = load(encoding).encode_ordinary
    made = list(pieces(text))
    if all(len(piece) < 40 for piece in made):
        assert [token for piece in made for token in encode(piece)] == encode(text)


@pytest.mark.usefixtures("small_pieces")
def test_small_pieces_really_are_cut_at_breaks() -> None:
    assert list(pieces("word " * 12)) == [
        "word word word word word word word",
        " word word word word word ",
    ]
    assert next(pieces("a;\n/b\n" * 12)) == "a;\n/b\n" * 6


def test_surrogates_are_joined_or_replaced_and_other_text_is_left_alone() -> None:
    assert well_formed("a\ud83d\ude00b\udc00c\ud800") == "a\U0001f600b\ufffdc\ufffd"
    plain = "nothing \u00e9 to mend"
    assert well_formed(plain) is plain
