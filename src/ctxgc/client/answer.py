"""What a model answers: one answer of a provider, and the reply that the caller gets in the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Self

import msgspec

from ctxgc.collector import GCResult

_CUT = "the answer was cut off before this call was complete, so it was not run"
_BAD = "the arguments are not a JSON object, so the call was not run"


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call. One with a `problem` is not run, and answered with the problem."""

    call_id: str
    name: str
    arguments: dict[str, Any] = {}
    problem: str | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: the messages to keep, its text and calls, and what it cost."""

    messages: list[dict[str, Any]]
    text: str
    calls: list[Call]
    stop: str
    input_tokens: int | None
    output_tokens: int
    raw: Any


class Reply(str):
    """The final text of the model: a `str` that knows how it came about.

    Attributes:
        stop: why the model stopped, in the provider's words.
        rounds: how many requests it took.
        input_tokens: what the provider counted for the last request; None if it did not report it.
        output_tokens: what it counted for all answers together.
        collections: the collections that ran meanwhile.
        raw: the SDK's own object of the last answer.
    """

    stop: str
    rounds: int
    input_tokens: int | None
    output_tokens: int
    collections: list[GCResult]
    raw: Any

    def __new__(cls, text: str, **facts: Any) -> Self:
        """Return the text with these facts as attributes."""
        reply = super().__new__(cls, text)
        vars(reply).update(facts)
        return reply

    @classmethod
    def of(cls, answers: Sequence[Answer], collections: Sequence[GCResult]) -> Self:
        """Return the reply that a sequence of answers ends in."""
        last = answers[-1]
        return cls(
            last.text,
            stop=last.stop,
            rounds=len(answers),
            input_tokens=last.input_tokens,
            output_tokens=sum(answer.output_tokens for answer in answers),
            collections=list(collections),
            raw=last.raw,
        )

    @property
    def text(self) -> str:
        """The text as a plain `str`."""
        return str.__str__(self)


def read_arguments(text: str) -> tuple[str, dict[str, Any], str | None]:
    """Return the arguments as JSON text that providers accept, as an object, and what is wrong.

    Models write arguments that are not JSON; such a text is kept inside an object, so that the model sees
    what it wrote and no provider refuses the history.
    """
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return text or "{}", value, None
    return json.dumps({"invalid_arguments": text}), {}, _BAD


def mark_truncated(calls: list[Call]) -> list[Call]:
    """Return the calls of an answer that was cut off; the last of them is not run."""
    if not calls:
        return []
    last = calls[-1]
    return [*calls[:-1], msgspec.structs.replace(last, problem=last.problem or _CUT)]
