"""Documents as JSON text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import InputError
from ctxgc.stores.base import MOST_NAME_BYTES, check_name, decode, encode

_TEXT = st.text(st.characters(codec=None), max_size=8)
_FLAT = st.one_of(_TEXT, st.integers(), st.booleans(), st.none())
_FLAT_DOCS = st.dictionaries(_TEXT, st.one_of(_FLAT, st.lists(_FLAT, max_size=3), st.tuples(_FLAT)))
_DOCS = st.dictionaries(_TEXT, st.one_of(_FLAT, st.floats(), st.lists(st.floats(), max_size=3)))


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


@given(_DOCS)
def test_every_document_is_written_as_the_standard_library_writes_it(doc: dict[str, Any]) -> None:
    try:
        plain = json.dumps(doc, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        with pytest.raises(InputError):
            encode(doc)
    else:
        expected = plain if _is_utf8(plain) else json.dumps(doc, separators=(",", ":"))
        assert encode(doc) == expected
        assert decode(encode(doc)) == json.loads(expected)


@given(_FLAT_DOCS)
def test_a_flat_document_is_written_like_any_other(doc: dict[str, Any]) -> None:
    assert encode(doc, flat=True) == encode(doc)


@pytest.mark.parametrize("char", ["a", "\u00e9", "\x00", "\U0001f600"])
def test_a_name_may_be_as_long_as_its_bytes_allow(char: str) -> None:
    most = MOST_NAME_BYTES // len(json.dumps(char)[1:-1])
    check_name("key", char * most)
    with pytest.raises(InputError):
        check_name("key", char * (most + 1))
