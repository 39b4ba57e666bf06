"""What is a fact, a word, a line, and what a message says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.lab.facts import lines_in, read_token, texts_of, tokens_in


def facts(text: str) -> list[str]:
    return [fact for (fact, _), _ in tokens_in(text) if fact]


def words(text: str) -> list[str]:
    return [word for (_, plain), _ in tokens_in(text) for word in plain]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see src/cli/run.py:42 now", ["src/cli/run.py"]),
        ("in /etc and ~/notes and ../up and .env", ["/etc", "~/notes", "../up"]),
        ("read and/or write", []),
        ("either read/write/run", ["read/write/run"]),
        ("fmt.Errorf(err) of HttpServer.start_up", ["fmt.Errorf", "HttpServer.start_up"]),
        ("MAX_SIZE, __init__, camelCase, XMLParser, IDs", ["MAX_SIZE", "__init__", "camelCase", "XMLParser"]),
        ("sha256 v2 deadbeef facade 8aac04e", ["sha256", "deadbeef", "8aac04e"]),
        ("in 2026, 999 of 12345, lines 124-163, 1.24.3", ["2026", "12345", "1.24.3"]),
        ("</system-reminder> //nolint end", []),
        ("https://host.example/a/b", ["host.example/a/b"]),
        ("one\\nTwoThree", ["TwoThree"]),
        ("pkg/a_test.go-248-\tfunc", ["pkg/a_test.go"]),
        ("f().EntryPoint", ["EntryPoint"]),
        ("e.g. this, i.e. that", []),
        ("it took 0.12s", []),
    ],
)  # fmt: skip
def test_facts_are_identifier_like(text: str, found: list[str]) -> None:
    assert facts(text) == found


def test_words_are_long_plain_and_lower_case() -> None:
    assert words("The Elephant-sized camelCase handler.go whispers a lot") == [
        "elephant",
        "whispers",
    ]


def test_lines_are_long_and_bare_of_numbers_and_blanks() -> None:
    text = "   12→\treturn compute(total, tax)\n13\t  if value is not None:  \nshort\n1234 is no number"
    assert list(lines_in(text)) == ["return compute(total, tax)", "if value is not None:"]


@given(st.text(max_size=200))
def test_a_token_begins_where_it_is_said_to(text: str) -> None:
    for (fact, plain), start in tokens_in(text):
        assert bool(fact) != bool(plain)
        assert text.startswith(fact, start)


@given(st.text(alphabet="aZ_./@-19~", max_size=30))
def test_a_fact_by_itself_is_a_fact(text: str) -> None:
    for (fact, _), _ in tokens_in(text):
        if fact:
            assert read_token(fact)[0] == fact


def call(arguments: Any) -> dict[str, Any]:
    function = {"name": "edit", "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"function": function}]}


@pytest.mark.parametrize(
    ("message", "texts"),
    [
        ({"role": "user", "content": "hello"}, ("hello",)),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}, ("a",)),
        (call('{"path": "a\\nb", "n": [1, {"deep": "c"}], "ok": true}'), ("edit", "a\nb", "1", "c")),
        (call("no json"), ("edit", "no json")),
        (call({"already": "decoded"}), ("edit", "decoded")),
        ({"role": "assistant", "content": "", "tool_calls": None}, ()),
        ({"role": "assistant", "tool_calls": ["?", {"function": 3}]}, ()),
    ],
)  # fmt: skip
def test_texts_are_the_content_and_the_decoded_arguments(
    message: dict[str, Any], texts: tuple[str, ...]
) -> None:
    assert texts_of(message) == texts
