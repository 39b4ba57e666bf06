"""Which runs the corpus has, and how each is made from its seeds."""

from __future__ import annotations

import gzip
import json
from typing import Any, NamedTuple

from ctxgc.testing import Chance, ChatRendering, Project, Script, instructions

_SOURCE = "ctxgc demo corpus: synthetic, a scripted agent on a generated project"
_CHARS_PER_TOKEN = 3.3
_BEGINNING = 1_770_000_000.0


class Plan(NamedTuple):
    """A run to make: its number, the project that it works on, and about how long it is in tokens."""

    number: int
    project: int
    tokens: int


PLANS = tuple(
    Plan(number, project, tokens)
    for number, (project, tokens) in enumerate(
        [
            (1, 10_000), (1, 24_000), (2, 14_000), (3, 18_000), (3, 60_000), (4, 30_000),
            (5, 36_000), (6, 42_000), (6, 12_000), (7, 48_000), (8, 54_000), (9, 66_000),
            (10, 78_000), (11, 90_000), (12, 104_000), (12, 112_000),
        ],
        start=1,
    )
)  # fmt: skip


def record(plan: Plan) -> dict[str, Any]:
    """Return a run as a line of the corpus."""
    project = Project(Chance(f"project {plan.project}"), 4 + plan.project % 4)
    project.chance = chance = Chance(f"run {plan.number}")
    clock = _Clock(chance)
    chat = ChatRendering(ids=iter(lambda: f"toolu_{chance.hexes(20)}", None))
    system = instructions(project)
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
    times, chars, script = [clock.now], len(system), Script(project, chance)
    while chars < plan.tokens * _CHARS_PER_TOKEN:
        for step in script.story():
            said = chat.messages(step)
            times += [clock.after(message) for message in said]
            messages += said
            chars += step.size
    return {
        "id": f"demo-{plan.number:02}",
        "group": f"demo-project-{plan.project:02}",
        "source": _SOURCE,
        "messages": messages,
        "times": times,
    }


class _Clock:
    """When each message is written: an agent takes seconds, a user minutes and sometimes hours."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self.now = _BEGINNING + chance.randrange(10_000_000)

    def after(self, message: dict[str, Any]) -> float:
        """Return the time at which the next message is written."""
        chance = self._chance
        if message["role"] == "user":
            self.now += chance.randrange(20, 240)
            if chance.happens(0.12):
                self.now += chance.randrange(400, 5_000)
        elif message["role"] == "tool":
            self.now += chance.randrange(1, 9)
        else:
            self.now += chance.randrange(3, 25 if "tool_calls" in message else 20)
        return self.now


def corpus_text() -> bytes:
    """Return all runs as JSON lines."""
    lines = (json.dumps(record(plan), ensure_ascii=False, separators=(",", ":")) for plan in PLANS)
    return "".join(f"{line}\n" for line in lines).encode()


def packed(text: bytes) -> bytes:
    """Return the text compressed, without the time of day."""
    return gzip.compress(text, 9, mtime=0)
