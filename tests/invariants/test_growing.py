from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc import wire
from ctxgc.core import Format, Message
from ctxgc.invariants import HistoryGroups, Pairing, groups, pair
from tests.wire.histories import random_history
from tests.wire.talk import ALL, calls, parsed, results, user


def shape(pairing: Pairing) -> list[object]:
    batches = [(b.first, b.last, b.calls, b.answers) for b in pairing.batches]
    rest = [pairing.orphans, pairing.extras, pairing.repeats, pairing.referenced]
    return [batches, *rest, pairing.has_server_tools]


@pytest.mark.parametrize("form", ALL)
@given(st.randoms(use_true_random=False), st.sets(st.integers(0, 40)))
def test_what_grows_has_at_each_time_the_groups_of_the_whole(
    form: Format, rng: Random, asked: set[int]
) -> None:
    history = wire.parse_history(random_history(rng, form, pending=True), form)
    rng.shuffle(history) if rng.random() < 0.3 else None
    growing = HistoryGroups(history[:2])
    for length, message in enumerate(history[2:], 3):
        growing.add(message)
        if length in asked or length == len(history):
            so_far = history[:length]
            assert growing.is_of(so_far)
            assert (growing.paired, growing.groups) == (so_far, sorted(groups(so_far)))
            assert shape(pair(growing.paired)) == shape(pair(so_far))


def test_a_history_of_another_format_is_looked_at_as_a_whole() -> None:
    chat: list[Message] = parsed("openai", user(), calls("openai", "a"), results("openai", "a"))
    growing = HistoryGroups(chat)
    assert growing.groups == [(0,), (1, 2)]
    growing.add(parsed("anthropic", user())[0])
    assert growing.groups == sorted(groups([*chat, *parsed("anthropic", user())]))
    assert (len(growing), growing.is_of(chat)) == (4, False)
