"""Histories that are full of everything the SDKs can send are collected and brought back."""

from __future__ import annotations

import pytest

from ctxgc import wire
from ctxgc.core import Format
from ctxgc.testing import check_history
from tests.sdk.long_histories import long_history, work
from tests.sdk.placement import Json
from tests.session.build import make
from tests.wire.talk import ALL, user

STRATEGIES = (
    "gc_mark_sweep", "gc_truncate", "gc_summarize", "gc_hybrid", "gc_budget", "gc_none",
)  # fmt: skip
# A request of ours would hold fewer cache marks than the fullest blocks of all kinds together.
BEYOND = ("cache_control",)


COMPACTED: dict[Format, Json] = {
    "responses": {"type": "compaction", "encrypted_content": "gAAA"},
    "anthropic": {
        "role": "assistant",
        "content": [{"type": "compaction", "content": "so far", "signature": "c2ln"}],
    },
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("form", COMPACTED)
def test_what_the_provider_compacted_stays_whatever_the_target(form: Format, strategy: str) -> None:
    history = [*user("start"), COMPACTED[form]]
    for number in range(12):
        history += work(form, number)
    session = make(1_000_000, strategy)
    session.extend(history, format=form)
    session.collect(1)
    assert session.messages(form)[1] == COMPACTED[form]


@pytest.mark.parametrize("form", ALL)
def test_the_long_history_is_valid(form: Format) -> None:
    history = long_history(form)
    assert wire.validate(history, form) == []
    assert check_history(history, form, ignore=BEYOND) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("form", ALL)
def test_it_is_collected_to_its_target_and_undone_byte_for_byte(
    form: Format, strategy: str
) -> None:
    session = make(1_000_000, strategy)
    session.extend(long_history(form), format=form)
    before, target = session.messages_json(), session.usage().total_tokens * 2 // 5
    collected = session.collect(target).items_collected
    assert (session.usage().total_tokens <= target) == (strategy != "gc_none")
    view = session.messages(form)
    assert wire.validate(view, form) == []
    assert check_history(view, form, ignore=BEYOND) == []
    if collected:
        session.undo()
    assert session.messages_json() == before
