"""A scripted model: it answers with the given turns, in order, and records the requests."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ctxgc.errors import InputError
from ctxgc.testing.breach import Breach, Format, Json
from ctxgc.tokens import ExactCounter


def default_count(text: str) -> int:
    """Return the tokens of a text in o200k, the tokenizer of OpenAI's current models."""
    return _counter().count(text)


@functools.cache
def _counter() -> ExactCounter:
    return ExactCounter("o200k_base")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call in a scripted turn; the server gives it an id if the script does not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None

    def arguments_text(self) -> str:
        """Return the arguments as JSON text, as OpenAI sends them."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(dict(self.arguments), ensure_ascii=False)

    def arguments_object(self) -> dict[str, Any]:
        """Return the arguments as an object, as Anthropic sends them."""
        value = json.loads(self.arguments) if isinstance(self.arguments, str) else self.arguments
        return dict(value)


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model: thinking, then text, then tool calls; any may be empty.

    `stop` replaces the stop reason that follows from the content, in the provider's words.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    stop: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as it arrived. `raw` has the exact bytes; API keys are not recorded."""

    format: Format
    path: str
    body: Json
    raw: bytes
    headers: Mapping[str, str]
    tokens: int = 0

    @property
    def messages(self) -> list[Any]:
        """The history that was sent; an input string counts as one user message."""
        history = self.body.get("input" if self.format == "responses" else "messages", [])
        return [{"role": "user", "content": history}] if isinstance(history, str) else history


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was refused, with everything that was wrong with it."""

    request: RecordedRequest
    breaches: tuple[Breach, ...]


TurnLike: TypeAlias = Turn | str | ToolCall | Iterable[ToolCall]
Scripted: TypeAlias = TurnLike | Callable[[RecordedRequest], TurnLike]


class ScriptedModel:
    """A list of turns, served in order.

    A turn is a text, a call, several calls, a `Turn`, or a function of the request that returns one of
    these. After the last turn `then` is served every time; without it the request fails.
    """

    def __init__(self, turns: Iterable[Scripted] = (), *, then: Scripted | None = None) -> None:
        self._turns = list(turns)
        self._then = then
        self._served = 0
        self._lock = threading.Lock()
        self.requests: list[RecordedRequest] = []

    @property
    def turns_left(self) -> int:
        """How many turns of the list have not been served yet."""
        return max(0, len(self._turns) - self._served)

    def extend(self, turns: Iterable[Scripted]) -> None:
        """Add turns to the end of the script."""
        with self._lock:
            self._turns.extend(turns)

    def answer(self, request: RecordedRequest) -> Turn:
        """Return the next turn, and record the request that it answers."""
        with self._lock:
            self.requests.append(request)
            scripted = self._next()
        return _as_turn(scripted(request) if callable(scripted) else scripted)

    def _next(self) -> Scripted:
        if self._served < len(self._turns):
            self._served += 1
            return self._turns[self._served - 1]
        if self._then is None:
            raise InputError(
                f"turns: request {len(self.requests)} arrived, the script has only {len(self._turns)} turns",
                hint="add turns, or set `then` to the answer after the last one",
                field="turns",
            )
        return self._then


def _as_turn(value: TurnLike) -> Turn:
    """Return the turn that consists of a text, a call or several calls."""
    if isinstance(value, Turn):
        return value
    if isinstance(value, str):
        return Turn(text=value)
    if isinstance(value, ToolCall):
        return Turn(tool_calls=(value,))
    calls = tuple(value)
    if not calls or not all(isinstance(call, ToolCall) for call in calls):
        raise InputError(
            f"turns: {value!r} is not a turn",
            hint="use a text, a ToolCall or several, a Turn, or a function of the request",
            field="turns",
        )
    return Turn(tool_calls=calls)
