"""The same promises by Hypothesis, which makes a failing conversation as short as it can be."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.core import FORMATS, Format
from tests.properties.history_cases import STRATEGIES, random_case
from tests.properties.history_runs import run_case


@given(st.randoms(use_true_random=False), st.sampled_from(FORMATS), st.sampled_from(STRATEGIES))
def test_collections_keep_every_promise(rng: Random, format: Format, plugin: str) -> None:  # noqa: A002
    case = random_case(rng, format, plugin)
    assert run_case(case)["shortfalls"] <= len(case.steps)
