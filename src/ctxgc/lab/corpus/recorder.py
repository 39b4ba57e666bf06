"""The recorder: writes down what the agent says and calls, as chat-completions messages with times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ctxgc.lab.corpus.words import Chance

Message = dict[str, Any]

_BEGINNING = 1_770_000_000.0


class Call(NamedTuple):
    """A call and its answer."""

    name: str
    arguments: dict[str, Any]
    answer: str


class Recorder:
    """Collects the messages of one run; its clock runs as an agent's would."""

    def __init__(self, chance: Chance, system: str) -> None:
        self._chance = chance
        self._now = _BEGINNING + chance.randrange(10_000_000)
        self.messages: list[Message] = []
        self.times: list[float] = []
        self.chars = 0
        self._add({"role": "system", "content": system}, 0)

    def user(self, text: str) -> None:
        """Let the user speak: after a while, now and then after a long one."""
        pause = self._chance.randrange(20, 240)
        if self._chance.happens(0.12):
            pause += self._chance.randrange(400, 5_000)
        self._add({"role": "user", "content": text}, pause)

    def say(self, text: str) -> None:
        """Let the agent speak and stop."""
        self._add({"role": "assistant", "content": text}, self._chance.randrange(3, 20))

    def call(self, text: str | None, *calls: Call) -> None:
        """Let the agent call tools, all at once, and hear their answers."""
        ids = [f"toolu_{self._chance.hexes(20)}" for _ in calls]
        made = [_made(call_id, call) for call_id, call in zip(ids, calls, strict=True)]
        asked = {"role": "assistant", "content": text, "tool_calls": made}
        self._add(asked, self._chance.randrange(3, 25))
        for call_id, call in zip(ids, calls, strict=True):
            answer = {"role": "tool", "tool_call_id": call_id, "content": call.answer}
            self._add(answer, self._chance.randrange(1, 9))

    def _add(self, message: Message, seconds: int) -> None:
        self._now += seconds
        self.messages.append(message)
        self.times.append(self._now)
        self.chars += len(message.get("content") or "")
        self.chars += sum(_length(call) for call in message.get("tool_calls", ()))


def _made(call_id: str, call: Call) -> Message:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _length(call: Message) -> int:
    return len(call["function"]["arguments"]) + 20


def bullet(lines: Sequence[str]) -> str:
    """Return lines as a list."""
    return "\n".join(f"- {line}" for line in lines)
