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
from tests.wire.talk import ALL, calls, results, says, user


@pytest.mark.parametrize("form", ALL)
def test_one_call_tells_the_format(form: Format) -> None:
    assert wire.detect_format([*user(), *calls(form, "a")]) == form
    assert wire.detect_format([*user(), *results(form, "a")]) == form


def test_plain_text_fits_all_and_counts_as_openai() -> None:
    assert wire.detect_format([*user(), *says()]) == wire.detect_format([]) == "openai"


def test_a_mixture_is_refused_and_both_sides_are_named() -> None:
    mixed = [*user(), *calls("anthropic", "a"), *results("openai", "a")]
    with pytest.raises(MessageError, match=r"openai \(message 2\) and anthropic \(message 1\)"):
        wire.detect_format(mixed)


@pytest.mark.parametrize("strange", [3, None, {}, {"content": [7, {"type": ["x"]}]}])
def test_strange_messages_tell_nothing(strange: Any) -> None:
    assert wire.detect_format([strange, *calls("responses", "a")]) == "responses"


@pytest.mark.parametrize("form", ALL)
def test_json_text_tells_the_format_as_plain_data_does(form: Format) -> None:
    history = [*user(), *calls(form, "a")]
    assert wire.detect_format([json.dumps(message).encode() for message in history]) == form
    assert wire.detect_format(["{", *map(json.dumps, history)]) == form


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": [{"type": "compaction", "content": "so far"}]},
        {"role": "assistant", "content": [{"type": "web_fetch_tool_result"}]},
        {"role": "system", "content": [{"type": "tool_removal", "tool": {}}]},
        {"role": "system", "output_config": {"effort": "low"}},
    ],
)
def test_blocks_that_only_anthropic_has_tell_the_format(message: Any) -> None:
    assert wire.detect_format([*user(), message]) == "anthropic"


def test_a_bare_reference_to_an_item_tells_the_format() -> None:
    assert wire.detect_format([*user(), {"id": "msg_1"}]) == "responses"


@pytest.mark.parametrize("form", ALL)
@given(st.randoms(use_true_random=False))
def test_no_history_is_taken_for_another_format(form: Format, rng: Random) -> None:
    history = random_history(rng, form)
    found = wire.detect_format(history)
    assert found == form or wire.validate(history, found) == []
