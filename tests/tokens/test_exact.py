from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import InputError
from ctxgc.tokens import ExactCounter, TokenCounter
from ctxgc.tokens.exact import load
from tests.requirements import requirement
from tests.tokens.samples import KINDS, TABLE, Sample, long_text

ENCODINGS = ("o200k_base", "cl100k_base")
MEGA = 1_000_000

any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)


@requirement("S0.dependencies.tiktoken")
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("sample", TABLE, ids=lambda sample: sample.name)
def test_counts_are_those_of_the_original_vocabulary(encoding: str, sample: Sample) -> None:
    assert ExactCounter(encoding).count(sample.text) == sample.counts[encoding]


def test_it_is_an_exact_counter_named_after_its_encoding() -> None:
    counter = ExactCounter("cl100k_base")
    assert isinstance(counter, TokenCounter)
    assert (counter.name, counter.exact, repr(counter)) == (
        "cl100k_base",
        True,
        "ExactCounter('cl100k_base')",
    )


@given(any_text)
def test_any_string_has_a_count_between_zero_and_its_bytes(text: str) -> None:
    count = ExactCounter().count(text)
    assert (count == 0) == (text == "")
    assert 0 <= count <= len(text.encode("utf-8", "replace")) * 3


@given(any_text, any_text)
def test_joining_two_texts_costs_no_more_than_a_few_tokens_at_the_seam(
    left: str, right: str
) -> None:
    count = ExactCounter().count
    assert count(left + right) <= count(left) + count(right) + 3


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_counting_in_pieces_equals_counting_the_whole(encoding: str, kind: str) -> None:
    text = long_text(kind, 300_000)
    assert ExactCounter(encoding).count(text) == len(load(encoding).encode_ordinary(text))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("run", [" ", "a", "=", "-", "\u5783"])
def test_a_long_run_inside_other_text_costs_at_most_a_token_per_cut(
    encoding: str, run: str
) -> None:
    text = "some words, then: " + run * 20_001 + "\nand more words"
    whole = len(load(encoding).encode_ordinary(text))
    assert whole <= ExactCounter(encoding).count(text) <= whole + 2


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("run", [" ", "a", "=", "\u5783"])
def test_a_run_shorter_than_a_block_is_counted_whole(encoding: str, run: str) -> None:
    text = "some words, then: " + run * 8000 + "\nand more words"
    assert ExactCounter(encoding).count(text) == len(load(encoding).encode_ordinary(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" * MEGA, 125_000),
        (" " * MEGA, 7_813),
        ("\t" * MEGA, 62_500),
        ("\0" * MEGA, 500_000),
        ("\ud800" * 1000, 125),
        ("<|endoftext|>" * 10, 61),
    ],
    ids=["letters", "blanks", "tabs", "NUL", "surrogates", "special"],
)
def test_hostile_text_is_counted_like_any_other(text: str, expected: int) -> None:
    assert ExactCounter().count(text) == pytest.approx(expected, rel=0.01)


def test_a_lone_surrogate_counts_as_the_replacement_character() -> None:
    count = ExactCounter().count
    assert count("log \ud800 line") == count("log \ufffd line")
    assert count("\ud83d\ude00") == count("\U0001f600")


@pytest.mark.parametrize("text", [b"bytes", None, 7, ["a"]])
def test_what_is_no_string_is_refused(text: object) -> None:
    with pytest.raises(InputError, match="text must be a string") as raised:
        ExactCounter().count(text)  # type: ignore[arg-type]
    assert raised.value.details == {"field": "text"}


@pytest.mark.parametrize("encoding", ["p50k_base", "", None, []])
def test_an_encoding_that_does_not_ship_is_refused(encoding: object) -> None:
    with pytest.raises(InputError, match="is not one that ships with ctxgc") as raised:
        ExactCounter(encoding)  # type: ignore[arg-type]
    assert "o200k_base, cl100k_base" in raised.value.hint


def test_a_fresh_process_counts_without_network_home_or_cache(tmp_path: object) -> None:
    program = (
        "import socket, sys\n"
        "def refuse(*_): raise AssertionError('network')\n"
        "socket.socket = socket.create_connection = socket.getaddrinfo = refuse\n"
        "import ctxgc.tokens\n"
        "assert 'tiktoken' not in sys.modules and 'requests' not in sys.modules\n"
        "names = ('o200k_base', 'cl100k_base')\n"
        "print([ctxgc.tokens.ExactCounter(name).count('Hello, world!') for name in names])\n"
    )
    environment = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[4, 4]\n", "")


def test_counting_opens_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert ExactCounter("o200k_base").count("Hello, world!") == 4
