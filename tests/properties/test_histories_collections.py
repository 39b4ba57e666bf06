"""Random conversations under all strategies: whatever is collected, no promise to a provider breaks.

Each case is a conversation in one to six pieces. After each piece the session is collected, judged by
`history_judge` (which shares no code with the planner), collected again, and now and then something is
pinned, recalled or undone. A failure names its seed; `test_histories_shrinking` makes cases small.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from ctxgc.core import FORMATS, Format
from tests.properties.history_cases import STRATEGIES, Case, open_calls, random_case
from tests.properties.history_runs import run_seeds

PAIRS = [(format_, plugin) for format_ in FORMATS for plugin in STRATEGIES]
QUICK, LARGE, DEEP = 100, 1_120, 28_000
"""How many histories each pair gets: in `make test`, `make large` and `make deep`."""


def test_there_are_at_least_twenty_thousand_histories() -> None:
    assert (len(PAIRS), len(PAIRS) * LARGE >= 20_000, len(PAIRS) * DEEP >= 500_000) == (
        18,
        True,
        True,
    )


@pytest.mark.parametrize("count", [QUICK, pytest.param(LARGE, marks=pytest.mark.large)])
@pytest.mark.parametrize(("format", "plugin"), PAIRS)
def test_collections_keep_every_promise(format: Format, plugin: str, count: int) -> None:  # noqa: A002
    seen = run_seeds(0, count, format, plugin)
    assert seen["histories"] == count
    assert [what for what in expected(plugin) if not seen[what]] == []


@pytest.mark.deep
@pytest.mark.parametrize(("format", "plugin"), PAIRS)
def test_many_more_collections_keep_every_promise(format: Format, plugin: str) -> None:  # noqa: A002
    assert run_seeds(1_000_000, DEEP, format, plugin)["histories"] == DEEP


def expected(plugin: str) -> list[str]:
    """Return what must happen now and then, lest the cases prove nothing."""
    if plugin == "gc_none":
        return ["sent", "shortfalls", "targets met"]
    always = ["sent", "shortfalls", "targets met", "collections", "removals", "recalls", "undos"]
    return [*always, "additions", *(["edits"] if plugin == "gc_mark_sweep" else [])]


@pytest.mark.parametrize("format", FORMATS)
def test_the_cases_hold_everything_that_agents_do(format: Format) -> None:  # noqa: A002
    seen: Counter[str] = Counter()
    for seed in range(LARGE):
        case = random_case(Random(seed), format, "gc_none")
        text = str([step.chunk for step in case.steps])
        seen["re-used ids"] += "functions_Bash_0" in text
        seen["interrupted"] += "interrupt" in text
        seen["media"] += "iVBORw0KGgo" in text
        seen["thinking"] += "'thinking'" in text or "reasoning" in text
        seen["server tools"] += "web_search" in text
        seen["long results"] += "lease" in text
        seen["six pieces"] += len(case.steps) == 6
        seen["open calls"] += bool(open_calls([m for step in case.steps for m in step.chunk]))
        seen["cut in a batch"] += bool(open_calls(case.steps[0].chunk)) and len(case.steps) > 1
        seen["parallel"] += _most_open(case) > 1
    rare = {"server tools"} if format == "openai" else set()
    assert {what for what, times in seen.items() if times < 10} == rare


def _most_open(case: Case) -> int:
    history = [message for step in case.steps for message in step.chunk]
    return max(len(open_calls(history[:n])) for n in range(len(history) + 1))
