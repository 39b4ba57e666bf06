from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc import wire
from ctxgc.core import Format
from ctxgc.errors import MessageError
from tests.wire.histories import random_history
from tests.wire.talk import ALL

STYLES = (
    {"separators": (",", ":"), "ensure_ascii": False},
    {"indent": 2},
    {"sort_keys": True, "ensure_ascii": True},
)


@pytest.mark.parametrize("form", ALL)
@given(st.randoms(use_true_random=False))
def test_an_untouched_history_comes_back_equal_with_its_key_order(
    form: Format, rng: Random
) -> None:
    history = random_history(rng, form)
    before = json.dumps(history)
    rendered = wire.render(wire.parse_history(history, form))
    assert json.dumps(rendered) == before == json.dumps(history)


@pytest.mark.parametrize("form", ALL)
@given(st.randoms(use_true_random=False), st.sampled_from(STYLES))
def test_messages_that_came_as_bytes_leave_byte_for_byte(
    form: Format, rng: Random, style: dict[str, Any]
) -> None:
    texts = [json.dumps(message, **style).encode() for message in random_history(rng, form)]
    messages = wire.parse_history(texts, form)
    assert wire.render_json(messages) == b"[" + b",".join(texts) + b"]"


@pytest.mark.parametrize(
    "text",
    [
        b'{"role":"user","content":"a","content":"b"}',
        b'{"role" : "user", "content":"\\ud83d", "n":1e2,"m":1.0}',
        b'{"role":"user","content":"x","big":' + b"9" * 5_000 + b"}",
        b' {"content":"caf\\u00e9","role":"user"}\n',
    ],
)
def test_spelling_that_python_cannot_hold_survives_in_bytes(text: bytes) -> None:
    assert wire.render_json([wire.parse(text, "openai")]) == b"[" + text + b"]"
    assert wire.message_bytes(wire.parse(text.decode(), "openai")) == text


def test_data_is_written_compact_and_always_as_utf8() -> None:
    message = wire.parse({"role": "user", "content": "☕ \ud83d"}, "openai")
    assert wire.message_bytes(message) == '{"role":"user","content":"☕ \\ud83d"}'.encode()


def test_neither_side_can_damage_the_other() -> None:
    data: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    message = wire.parse(data, "openai")
    data["content"].clear()
    (rendered,) = wire.render([message])
    rendered["content"].clear()
    assert wire.render([message]) == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]


def test_a_message_without_an_id_gets_one_of_its_own() -> None:
    one, other = (wire.parse({"role": "user", "content": "x"}, "openai") for _ in range(2))
    assert len(one.message_id) == 32
    assert one.message_id != other.message_id
    assert wire.parse({"role": "user", "content": "x"}, "openai", "m1").message_id == "m1"


def test_an_error_in_a_history_names_the_message() -> None:
    with pytest.raises(MessageError, match="message 1: `role` 'usr' is unknown") as caught:
        wire.parse_history([{"role": "user", "content": "x"}, {"role": "usr"}], "openai")
    assert caught.value.details == {"field": "role", "index": 1}
    assert caught.value.hint == "did you mean 'user'?"


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(MessageError, match="`format` 'gemini' is unknown"):
        wire.parse({"role": "user", "content": "x"}, "gemini")  # type: ignore[arg-type]
