"""P10: with defaults the same input gives the same plan and the same view, in any process.

Handles and ids are random in each process; they are compared by the order in which they occur.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from ctxgc import Session
from ctxgc.core import HANDLE
from ctxgc.testing import make_session
from ctxgc.tokens import CountingCache, ExactCounter

PROCESSES = 4
WINDOWS = (4_000, 5_000)
EDGE = 24


def played(plugin: str) -> str:
    """Return all that a session with defaults does for a scripted agent, as JSON without random names."""
    return _without_names(json.dumps([_story(window, plugin) for window in WINDOWS]))


def _story(window: int, plugin: str) -> list[Any]:
    session = _session(window, plugin)
    views = []
    for message in make_session(seed=3, messages=90).messages:
        if message["role"] == "assistant":
            views.append(session.messages())
        session.append(message)
    collections = [
        (each.trigger_reason.value, each.tokens_before, each.tokens_after, each.shortfall)
        for each in session.gc_history
    ]
    assert collections
    return [views[-1], collections, session.usage().total_tokens, _at_the_edge(session)]


def _session(window: int, plugin: str) -> Session:
    seconds = count()
    start = datetime(2026, 1, 1, tzinfo=UTC)
    session = Session(
        window, store="memory:", plugin=plugin,
        clock=lambda: start + timedelta(seconds=next(seconds)),
    )  # fmt: skip
    session.tools("openai")
    return session


def _at_the_edge(session: Session) -> list[Any]:
    """Return the plans for the targets around the size that a collection lands on."""
    lands = session.usage().total_tokens * 3 // 4
    plans = [session.plan(lands + more) for more in range(-EDGE, EDGE)]
    return [[(each.segment_id, each.action) for each in plan.candidates] for plan in plans]


_RANDOM = re.compile(rf"{HANDLE.pattern}|seg-[0-9a-f]{{16}}|[0-9a-f]{{32}}(?::\d+)?")


def _without_names(text: str) -> str:
    known: dict[str, str] = {}
    return _RANDOM.sub(lambda found: known.setdefault(found[0], f"<{len(known)}>"), text)


@pytest.mark.parametrize("plugin", ["gc_mark_sweep", "gc_budget"])
def test_the_same_input_gives_the_same_plans_and_views_in_any_process(plugin: str) -> None:
    code = f"from tests.session.test_determinism import played; print(played({plugin!r}))"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        )
        for seed in range(PROCESSES)
    ]  # fmt: skip
    said = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0] * PROCESSES
    assert len(said) == 1
    assert "[ctxgc" in said.pop()


def test_every_handle_counts_alike() -> None:
    counter = CountingCache(ExactCounter())
    spelled = ("h-xlmgqubtalseikaa", "h-2z5yy3v3b7p4igq5", "h-7b6ctzkkoamozww5")
    calls = [f'[ctxgc: 90 lines moved out; context_recall(handle="{each}")]' for each in spelled]
    assert len({ExactCounter().count(call) for call in calls}) == 3
    assert len({counter.count(call) for call in calls}) == 1
