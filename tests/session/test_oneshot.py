"""collect(): a history in, a history under budget out."""

from __future__ import annotations

import copy

import pytest

import ctxgc
from ctxgc.core import FORMATS, Format
from ctxgc.errors import MessageError
from ctxgc.testing import check_history, make_session


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("plugin", ["gc_truncate", "gc_hybrid", "gc_budget", "gc_mark_sweep"])
def test_a_long_history_fits_and_stays_valid(format_: Format, plugin: str) -> None:
    story = make_session(5, 120, format_).messages
    before = copy.deepcopy(story)
    new, result = ctxgc.collect(story, 12_000, plugin=plugin)
    assert story == before
    assert check_history(new, format_) == []
    assert result.tokens_after <= 7_200 or result.shortfall == result.tokens_after - 7_200
    assert "context_recall" not in str(new)


def test_a_history_that_fits_comes_back_as_it_is() -> None:
    story = make_session(1, 20).messages
    new, result = ctxgc.collect(story, 1_000_000)
    assert (new, result.items_collected) == (story, 0)


def test_a_history_of_two_formats_is_refused() -> None:
    with pytest.raises(MessageError, match="mixes the formats"):
        ctxgc.collect(
            [
                {"role": "tool", "tool_call_id": "a", "content": "x"},
                {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
            ],
            1_000,
        )
