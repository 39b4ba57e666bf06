"""Whatever happens to a session, in any order: its view is valid, its books agree, nothing is lost."""

from __future__ import annotations

from random import Random

import pytest

from ctxgc.core import FORMATS, Format
from tests.session.random_walk import STRATEGIES, Walk, faults

WALKS = 4
MANY = 45
"""For each strategy and format; with 25 steps each, more than 20,000 steps in all."""
STEPS = 25


@pytest.mark.parametrize("walks", [WALKS, pytest.param(MANY, marks=pytest.mark.deep)])
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("plugin", STRATEGIES)
def test_a_random_walk_leaves_the_session_whole_at_every_step(
    plugin: str, format_: Format, walks: int
) -> None:
    for seed in range(walks):
        walk = Walk(Random(f"{plugin}-{format_}-{seed}"), plugin, format_)
        for _ in range(STEPS):
            walk.step()
            assert faults(walk.session) == [], (seed, walk.steps)
            assert walk.lost_pins() == [], (seed, walk.steps)
