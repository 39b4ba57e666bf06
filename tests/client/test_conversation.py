"""Long random conversations under pressure: no provider ever sees an invalid history."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ctxgc import GCConfig
from ctxgc.testing import ScriptedModel, StrictServer, ToolCall, Turn
from tests.client.talk import connected

WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "src/app.py",
    "tests/test_app.py",
    "value_of_7",
    "error",
    "total",
]
REAL = 3_000


def babble(dice: random.Random, most: int) -> str:
    return " ".join(dice.choices(WORDS, k=dice.randint(1, most)))


def turn(dice: random.Random, *, thinks: bool) -> Turn:
    """Return what the model says once: often some calls, good and bad."""
    calls = [
        ToolCall("look", {"words": dice.randint(1, 300)}),
        ToolCall("look", {"wrong": True}),
        ToolCall("nothing"),
    ]
    some = dice.choices(calls, weights=[8, 1, 1], k=dice.choice([0, 1, 1, 2, 3]))
    thinking = babble(dice, 40) if thinks or dice.random() < 0.5 else ""
    return Turn(babble(dice, 80) if not some or dice.random() < 0.5 else "", tuple(some), thinking)


@pytest.mark.parametrize(
    ("provider", "model", "plugin", "believed"),
    [
        ("openai", "gpt-4o", "gc_mark_sweep", REAL),
        ("openai", "gpt-4o", "gc_budget", 2 * REAL),
        ("responses", "gpt-4o", "gc_mark_sweep", 2 * REAL),
        ("anthropic", "claude-opus-5-5", "gc_mark_sweep", REAL),
        ("anthropic", "claude-opus-5-5", "gc_truncate", 2 * REAL),
        ("anthropic", "claude-sonnet-4", "gc_hybrid", REAL),
    ],
)
def test_only_the_length_of_a_view_is_ever_refused(
    provider: str, model: str, plugin: str, believed: int
) -> None:
    dice = random.Random(f"{provider} {model} {plugin} {believed}")
    said: list[str] = []

    def look(words: int) -> str:
        said.append(babble(dice, words))
        return said[-1]

    bound = model.endswith("5-5")
    end = Turn("Enough.", (), "I am done.")
    script = ScriptedModel([turn(dice, thinks=not bound) for _ in range(18)], then=end)
    config = GCConfig(preserve_recent_turns=1, recent_messages=4, recent_user_messages=1)
    thinking = {"type": "adaptive"} if bound else {"type": "enabled", "budget_tokens": 1024}
    options: dict[str, Any] = {"thinking": thinking} if provider == "anthropic" else {}
    with (
        StrictServer(script, context_limit=REAL, count_output=False, bind_thinking=bound)
        as server,
        connected(
            server, provider, model=model, plugin=plugin, config=config, context_limit=believed,
            tools=[look], max_rounds=99, options=options,
        ) as client,
    ):  # fmt: skip
        while script.turns_left:
            client.send_message(babble(dice, 100))
        texts = {segment.text for segment in client.session.segments()}
        assert client.get_gc_history()
    assert {b.rule for refusal in server.refusals for b in refusal.breaches} <= {"too_long"}
    assert set(said) <= texts
