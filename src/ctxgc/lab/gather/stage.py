"""The stage of a script: it takes down each step, with what the agent needs from earlier to make it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxgc.lab.gather.things import CONTENTS, KEYS, Content, Thing, make_thing, names, sentence
from ctxgc.lab.gather.tools import TOOLS, FetchTools, ToolKind
from ctxgc.testing import AgentCall, AgentStep, Chance

_LEAST_THING = 60
_MOST_SHARE = 0.12
_LEAST_PIECE, _MOST_PIECE = 120, 3_000
_PIECES = 40
_SAME_TOOL = 0.6
_POLL = 0.2
_NUMBERED = 0.75


class Need(NamedTuple):
    """What an answer must quote: an exact line, and the name of the thing that it is about."""

    line: str
    subject: str = ""


class ScriptStep(NamedTuple):
    """One step of a script, and what the agent needs from earlier to make it."""

    step: AgentStep
    needs: tuple[Need, ...] = ()


class Stage:
    """Takes down the steps of one script.

    `gathered` is about how many tokens the fetched things have together, `noise` how many come in
    besides, which no answer needs.
    """

    def __init__(
        self,
        chance: Chance,
        tool: ToolKind,
        content: Content,
        *,
        window: int,
        gathered: int,
        noise: int,
    ) -> None:
        self.chance = chance
        self.content = content
        self.tools = FetchTools(tool, content, chance)
        self.steps: list[ScriptStep] = []
        self.gathered = gathered
        self._noise = noise
        # Line numbers take their part of what a file reader shows.
        self._density = _NUMBERED if self.tools.numbered else 1.0
        self._most_thing = int(_MOST_SHARE * window)
        self._piece = min(_MOST_PIECE, max(_LEAST_PIECE, window // _PIECES))
        self._polled = f"queue-{chance.randrange(100, 999)}"

    # -- Steps

    def ask(self, text: str) -> None:
        """Let the user say something."""
        self.steps.append(ScriptStep(AgentStep("user", text)))

    def say(self, text: str, needs: Sequence[Need] = ()) -> None:
        """Let the agent answer without a call."""
        self.steps.append(ScriptStep(AgentStep("assistant", text), tuple(needs)))

    def call(self, text: str, call: AgentCall, needs: Sequence[Need] = ()) -> None:
        """Let the agent call a tool."""
        self.steps.append(ScriptStep(AgentStep("assistant", text, (call,)), tuple(needs)))

    def fetch(self, thing: Thing, text: str = "") -> None:
        """Let the agent fetch a thing."""
        self.call(text, self.tools.fetch(thing.name, thing.text))

    # -- What is fetched

    def things(self, keys: Sequence[str]) -> list[Thing]:
        """Return what the script gathers: two to eight things, or more if one would be too large."""
        most = max(2, min(8, self.gathered // _LEAST_THING))
        count = max(self.chance.randrange(2, most + 1), self._enough)
        size = int(self._density * self.gathered) // count
        return [
            make_thing(self.chance, self.content, name, keys, size)
            for name in names(self.chance, count)
        ]

    @property
    def _enough(self) -> int:
        return math.ceil(self.gathered / self._most_thing)

    def keys(self, count: int) -> list[str]:
        """Return keys that the things are asked about."""
        return self.chance.sample(KEYS, count)

    # -- Noise

    def begin_elsewhere(self, share: float) -> None:
        """Begin with another request, which takes this share of all noise."""
        self.side_request(share)
        self._noise -= int(share * self._noise)

    def side_request(self, share: float) -> None:
        """Let the user ask for something else, which is done at once, with this share of the noise."""
        self.ask(
            f"Something else, please: look through the {self._topic()} and tell me if it is fine."
        )
        self.distract(share)
        self.say("Done: nothing there needs our attention.")

    def distract(self, share: float, steps: int = 1) -> None:
        """Let the agent look at other things, with this share of the noise, in at least so many steps."""
        tokens = int(share * self._noise)
        count = max(steps, round(tokens / self._piece))
        for _ in range(count):
            self._look_elsewhere(max(20, tokens // count))

    def talk(self, share: float) -> None:
        """Let user and agent talk about other things, with this share of the noise."""
        left = int(share * self._noise)
        while left > 0:
            size = min(left, self._piece)
            self.ask(self.prose(size // 2))
            if self.chance.happens(_POLL):
                self._look_elsewhere(size // 4)
            self.say(self.prose(size // 2))
            left -= size

    def prose(self, tokens: int) -> str:
        """Return sentences of no use, of about this size."""
        return make_thing(self.chance, "prose", self._topic(), (), tokens).text.split("\n\n", 1)[-1]

    def _look_elsewhere(self, tokens: int) -> None:
        chance = self.chance
        if chance.happens(_POLL):
            thing = make_thing(chance, "log", self._polled, (), tokens)
            self.fetch(thing, "Is it through?")
            return
        same = chance.happens(_SAME_TOOL)
        content = self.content if same else chance.choice(CONTENTS)
        tokens = int(self._density * tokens) if same else tokens
        tools = self.tools if same else FetchTools(chance.choice(TOOLS), content, chance)
        thing = make_thing(chance, content, self._topic(), self.keys(2), tokens)
        self.call(f"Now the {thing.name}.", tools.fetch(thing.name, thing.text))

    def _topic(self) -> str:
        return f"{sentence(self.chance).split()[1].rstrip('.')}-{self.chance.randrange(100, 999)}"


def needs_of(things: Sequence[Thing], keys: Sequence[str]) -> list[Need]:
    """Return the needs of an answer that quotes these keys of all things."""
    return [Need(thing.lines[key], thing.name) for thing in things for key in keys]


def quoted(things: Sequence[Thing], keys: Sequence[str]) -> str:
    """Return the values of these keys of all things, as an agent lists them."""
    return "\n".join(_quotes(things, keys))


def _quotes(things: Sequence[Thing], keys: Sequence[str]) -> Iterator[str]:
    for thing in things:
        yield f"{thing.name}: " + ", ".join(f"{key} {thing.values[key]}" for key in keys)
