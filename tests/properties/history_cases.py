"""Cases for the promises of a session: a conversation in pieces, a strategy, a window, options.

A case depends on its generator alone, so that a seed names it; every choice is made by `rng.random()`,
and small numbers give the simpler case, so that Hypothesis shrinks well.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any, Literal

from ctxgc.config import GCConfig
from ctxgc.core import Format
from ctxgc.strategies import GCPlugin, load_gc_plugin
from ctxgc.testing import check_history
from ctxgc.wire import repair
from tests.wire.breaking import break_history
from tests.wire.histories import random_history

Json = dict[str, Any]
How = Literal["collect", "relieve", "send"]

STRATEGIES = (
    "gc_none", "gc_truncate", "gc_summarize", "gc_hybrid", "gc_budget", "gc_mark_sweep",
)  # fmt: skip
LOG_LINES = (
    "FAILED tests/test_pool.py::test_reuse - AssertionError: 3 != 4",
    "src/db/pool.rs:42: warning: unused variable `lease`",
    "commit 9f2c1ab7 Fix the lease counter (TCK-118)",
    "INFO request_id=7c0e41 served in 12 ms",
    "def acquire_lease(pool, timeout_ms=250): return pool.take()",
)
SYSTEM_TEXT = "You are a careful engineer. Never touch production."
TOOL_SCHEMA = {"name": "Bash", "input_schema": {"type": "object", "properties": {}}}

IGNORED = ("duplicate_id",)
"""Some servers use ids again; that is theirs to answer for, not the collector's."""

_CONFIGS: tuple[Json, ...] = (
    {},
    {"preserve_recent_turns": 0, "recent_messages": 0, "recent_user_messages": 0},
    {"preserve_recent_turns": 1, "recent_messages": 2, "notify_on_gc": False},
    {"preserve_recent_turns": 1, "pressure_percent": None, "recent_messages": 0},
    {"preserve_recent_turns": 0, "max_turns": 1, "recent_messages": 1, "recent_user_messages": 0},
    {"preserve_recent_turns": 2, "evacuate_min_tokens": 0, "recent_messages": 0},
    {"preserve_recent_turns": 0, "pinned_turn_indices": [1], "recent_messages": 0},
    {"preserve_recent_turns": 0, "threshold_percent": 30.0, "target_percent": 10.0},
    {"preserve_recent_turns": 0, "notification_template": "({tokens_freed} less)", "batch": 1},
    {"preserve_recent_turns": 1, "recall_hold_collections": 0, "evacuate_keep_percent": 0},
)
_WITH_SUMMARIZER = ("gc_summarize", "gc_hybrid")


@dataclass(frozen=True)
class Step:
    """What comes in, and how it is collected then; `target` None leaves that to the configuration."""

    chunk: list[Json]
    how: How
    target: int | None
    pin: float | None
    recalls: bool
    undoes: bool


@dataclass(frozen=True)
class Case:
    """One conversation under collection."""

    format: Format
    plugin: str
    options: int
    limit: int
    beside: bool
    steps: tuple[Step, ...]

    def config(self) -> GCConfig:
        """Return the configuration of the case."""
        return _config(self.options % len(_CONFIGS))

    def strategy(self) -> GCPlugin:
        """Return the strategy of the case."""
        return _strategy(self.plugin, self.options % len(_SUMMARIZERS))


def random_case(rng: Random, format: Format, plugin: str) -> Case:  # noqa: A002
    """Return a case: 1-6 collections of a window from far too small to roomy."""
    pieces = _pieces(rng, format)
    size = sum(len(str(message)) for piece in pieces for message in piece) // 4
    limit = 1 + int(size * rng.random() ** 2 * 2)
    steps = tuple(_step(rng, piece, limit) for piece in pieces)
    return Case(format, plugin, int(rng.random() * 30), limit, rng.random() > 0.8, steps)


def _step(rng: Random, chunk: list[Json], limit: int) -> Step:
    chance = rng.random()
    how: How = "collect" if chance < 0.6 else "relieve" if chance < 0.8 else "send"
    target = int(limit * rng.random()) if how != "send" and rng.random() > 0.6 else None
    pin = rng.random() if rng.random() > 0.7 else None
    return Step(chunk, how, target, pin, rng.random() > 0.7, rng.random() > 0.9)


def _pieces(rng: Random, format: Format) -> list[list[Json]]:  # noqa: A002
    """Return a history as it comes in: mostly as its agent made it, else left open, or repaired."""
    chance = rng.random()
    history = random_history(rng, format, pending=chance > 0.85)
    mended = _broken_and_repaired(rng, history, format) if 0.7 < chance < 0.85 else None
    long = _with_long_results(rng, mended or history)
    marks = {1 + int(rng.random() * len(long)) for _ in range(int(rng.random() ** 2 * 6))}
    free = [n for n in sorted(marks) if _may_pause(long[:n], format, within_calls=not mended)]
    return [long[a:b] for a, b in pairwise([0, *free, len(long)])]


def _broken_and_repaired(rng: Random, history: list[Json], format: Format) -> list[Json] | None:  # noqa: A002
    """Return a history that careless edits went through and `repair` made whole, if it could."""
    for _ in range(1 + int(rng.random() * 3)):
        history = break_history(rng, history, format)
    mended = list(repair(history, format).messages)
    return None if check_history(mended, format, ignore=IGNORED) else mended


def _may_pause(history: list[Json], format: Format, *, within_calls: bool) -> bool:  # noqa: A002
    """Tell whether an agent could be here: reasoning, for one, never comes without what it led to."""
    if not within_calls and open_calls(history):
        return False
    return not check_history(history, format, complete=False, ignore=IGNORED)


def open_calls(messages: Iterable[Json]) -> set[str]:
    """Return the ids of calls that wait for a result at the end of a history."""
    waiting: set[str] = set()
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else ()
        waiting |= {call["id"] for call in message.get("tool_calls") or ()}
        waiting |= {block["id"] for block in blocks if block.get("type") == "tool_use"}
        if str(message.get("type")).endswith("_call") and "call_id" in message:
            waiting.add(message["call_id"])
        answered = [message.get("tool_call_id"), *(b.get("tool_use_id") for b in blocks)]
        if str(message.get("type")).endswith("_output"):
            answered.append(message["call_id"])
        waiting -= set(filter(None, answered))
    return waiting


def _with_long_results(rng: Random, history: list[Json]) -> list[Json]:
    """Return the history with some results as long as those of real tools."""
    grown = copy.deepcopy(history)
    for message in grown:
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                _lengthen(rng, block, "content")
        if message.get("role") == "tool":
            _lengthen(rng, message, "content")
        _lengthen(rng, message, "output")
    return grown


def _lengthen(rng: Random, holder: Json, field: str) -> None:
    if isinstance(holder.get(field), str) and rng.random() > 0.5:
        first = int(rng.random() * 5)
        lines = (LOG_LINES[(first + n) % 5] + f" #{n}" for n in range(int(rng.random() * 24)))
        holder[field] = "\n".join((holder[field], *lines))


def _broken_summarizer(text: str) -> str:
    raise RuntimeError("the service is down")


_SUMMARIZERS: tuple[Any, ...] = (
    None,
    lambda text: "They fixed the lease counter.",
    _broken_summarizer,
    lambda text: text + " and more",
    lambda text: "",
)


@cache
def _config(number: int) -> GCConfig:
    return GCConfig.from_dict(_CONFIGS[number])


@cache
def _strategy(name: str, number: int) -> GCPlugin:
    options: dict[str, Any] = {}
    if name in _WITH_SUMMARIZER:
        options = {"summarizer": _SUMMARIZERS[number]}
    if name == "gc_mark_sweep":
        # A cut for the price before the same request is a result of its own; tests/session judges those.
        options = {"preset": "off"}
    return load_gc_plugin(name, options)
