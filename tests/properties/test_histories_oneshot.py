"""`ctxgc.collect`, the one-shot form, on random histories under all strategies."""

from __future__ import annotations

import copy
import json
from random import Random

import pytest

from ctxgc import collect
from ctxgc.core import FORMATS, Format
from ctxgc.testing import check_history
from ctxgc.tokens import message_tokens
from ctxgc.wire import parse
from tests.properties.history_cases import IGNORED, STRATEGIES, Case, Json, open_calls, random_case
from tests.properties.history_judge import COUNTER

EACH = 60


def tokens(messages: list[Json], format: Format) -> int:  # noqa: A002
    return sum(message_tokens(parse(m, format, "m"), COUNTER) for m in messages)


def one_shot(case: Case, history: list[Json]) -> tuple[list[Json], int, int]:
    """Collect a history once; return it with its tokens and its shortfall."""
    config, target = case.config(), case.steps[0].target
    view, result = collect(
        history, case.limit, format=case.format, target_tokens=target, plugin=case.strategy(),
        config=config, counter=COUNTER,
    )  # fmt: skip
    assert result.success, result.error
    goal = int(case.limit * config.target_percent / 100) if target is None else target
    assert result.shortfall == max(0, result.tokens_after - goal)
    return view, result.tokens_after, result.tokens_before


@pytest.mark.parametrize("plugin", STRATEGIES)
@pytest.mark.parametrize("format", FORMATS)
def test_a_history_comes_back_valid_no_larger_and_the_same_each_time(
    format: Format,  # noqa: A002
    plugin: str,
) -> None:
    for seed in range(EACH):
        case = random_case(Random(seed), format, plugin)
        history = [message for step in case.steps for message in step.chunk]
        untouched = copy.deepcopy(history)
        view, after, before = one_shot(case, history)
        assert history == untouched
        complete = not open_calls(view)
        assert check_history(view, format, complete=complete, ignore=IGNORED) == [], seed
        assert (after, before) == (tokens(view, format), tokens(history, format)), seed
        assert after <= before, seed
        assert one_shot(case, history)[0] == view, seed


@pytest.mark.parametrize("plugin", STRATEGIES)
def test_a_window_with_room_gives_the_history_back_as_it_is(plugin: str) -> None:
    for seed in range(EACH):
        case = random_case(Random(seed), "anthropic", plugin)
        history = [message for step in case.steps for message in step.chunk]
        view, result = collect(history, 10**6, format="anthropic", plugin=plugin, counter=COUNTER)
        assert json.dumps(view) == json.dumps(history)
        assert (result.removal_list, result.tokens_freed, result.shortfall) == ([], 0, 0)
