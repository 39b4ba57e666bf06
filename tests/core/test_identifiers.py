"""Identifiers in text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import identifiers, looks_like_path
from ctxgc.core.text import _ORDINARY, _TOKEN, MAX_LENGTH, MAX_PER_TEXT, SCAN_LIMIT, is_identifier


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call parse_header in src/a.py:12 now", ["parse_header", "src/a.py:12"]),
        ("ERR_7731 at 10.0.0.1, again ERR_7731", ["ERR_7731", "10.0.0.1"]),
        ("HttpClient and McpServer, not Http or MCP", ["HttpClient", "McpServer"]),
        ("value 123456 stays, 123 does not", ["123456"]),
        ("a well-known word, bug-123 is a name", ["bug-123"]),
        ("plain words only, nothing else", []),
        ("", []),
        ("\ud800\x00 a_b_c \udfff", ["a_b_c"]),
    ],
)
def test_what_carries_a_reference_is_found_once_and_in_order(
    text: str, expected: list[str]
) -> None:
    assert identifiers(text) == expected


def test_words_too_short_or_too_long_are_none() -> None:
    assert [is_identifier(token) for token in ("a1", "a_" * MAX_LENGTH, "a_1")] == [
        False,
        False,
        True,
    ]


def test_the_work_on_one_text_is_bounded() -> None:
    many = " ".join(f"name_{n}" for n in range(MAX_PER_TEXT * 2))
    assert len(identifiers(many)) == MAX_PER_TEXT
    assert identifiers(many, 2) == ["name_0", "name_1"]
    assert identifiers(" " * SCAN_LIMIT + "too_late") == []


@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, "a." * 500_000, "/" * 1_000_000, "a_" * 500_000, "-" * 1_000_000],
)
def test_hostile_text_neither_stalls_nor_raises(text: str) -> None:
    assert identifiers(text) == []


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("src/a.py", True),
        ("a.py", True),
        ("//host", False),
        ("10.0.0.1", True),
        ("3.14", False),
        ("parse_header", False),
        ("a.", False),
    ],
)
def test_a_path_has_a_slash_or_an_extension(token: str, expected: bool) -> None:
    assert looks_like_path(token) is expected


@given(st.from_regex(_TOKEN, fullmatch=True) | st.text(alphabet="aZ1-._é", max_size=12))
def test_the_short_ways_to_tell_find_what_the_pattern_does(token: str) -> None:
    ordinary = _ORDINARY.fullmatch(token) is not None
    assert is_identifier(token) == (3 <= len(token) <= MAX_LENGTH and not ordinary)
