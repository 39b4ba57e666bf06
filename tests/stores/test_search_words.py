from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.stores import search, search_words
from ctxgc.stores.search import LONGEST_WORD, padded_words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("?! \0 \ud800 ...", []),
        ("The cat", ["the", "cat"]),
        ("parse_config", ["parse", "config", "parseconfig"]),
        ("parseConfig ParseConfig", ["parse", "config", "parseconfig"] * 2),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("src/auth/login.py:42", ["src", "auth", "login", "py", "42"]),
        ("__init__", ["init"]),
        ("sha256 v2", ["sha256", "v2"]),
        ("Straße ＦＵＬＬ", ["strasse", "full"]),
        ("e\u0301te\u0301", ["été"]),
        ("数据库", ["数", "据", "库", "数据", "据库"]),
        ("x" * 1_000, ["x" * LONGEST_WORD]),
    ],
)
def test_words_of(text: str, found: list[str]) -> None:
    assert search_words(text) == found


@given(st.text())
def test_words_are_free_of_blanks_marks_and_what_databases_refuse(text: str) -> None:
    for word in search_words(text):
        assert word
        assert len(word) <= LONGEST_WORD
        assert not any(char.isspace() or char in '"=\0' for char in word)
        word.encode()


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_what_is_written_small_is_found_in_capitals(text: str) -> None:
    assert set(search_words(text.lower())) <= set(search_words(text.lower().upper()))


@given(st.text())
def test_spaced_words_are_the_words_between_blanks(text: str) -> None:
    assert padded_words(text) == "".join(f" {word} " for word in search_words(text))


def test_the_memory_for_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_KNOWN", 5)
    assert search_words("a b c d e f g") == list("abcdefg")
    assert len(search._known) == 0
