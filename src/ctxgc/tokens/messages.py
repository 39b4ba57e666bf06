"""What a message costs, its parts and the frame around them, and the scale of a provider's counts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from ctxgc.core import Message, Part
from ctxgc.tokens.counter import HIGHEST, LOWEST, TokenCounter

MESSAGE_OVERHEAD = 4
CALL_OVERHEAD = 6
RESULT_OVERHEAD = 4
_LEAST_GROWTH = 2_000


def part_tokens(part: Part, counter: TokenCounter) -> int:
    """Return the tokens of one part: what the model reads of it, its media, and its frame."""
    tokens = counter.count(part.text) + part.media_tokens
    if part.kind == "tool_call":
        return tokens + counter.count(part.name or "") + CALL_OVERHEAD
    return tokens + (RESULT_OVERHEAD if part.kind == "tool_result" else 0)


def message_tokens(message: Message, counter: TokenCounter) -> int:
    """Return the tokens of a whole message."""
    return MESSAGE_OVERHEAD + sum(part_tokens(part, counter) for part in message.parts)


# -- The provider's scale


class Reported(NamedTuple):
    """One request: what we count for its messages, and what its provider reported for all of it.

    `beside` is set if the report was rewritten because messages were cut: the tokens known not to be
    messages. Reports before such a one are about messages that are gone.
    """

    counted: int
    prompt: int
    beside: int | None = None
    window: int = 1


def tokens_before(sizes: Iterable[tuple[int, int]], lines: Iterable[int]) -> list[int]:
    """Return how many tokens come before each line, given lines with their tokens."""
    ordered = sorted(sizes)
    known = [line for line, _ in ordered]
    totals = [0, *accumulate(size for _, size in ordered)]
    return [totals[bisect_left(known, line)] for line in lines]


def scale_of(requests: Sequence[Reported]) -> float | None:
    """Return how many tokens a provider counts for one of ours; None if that cannot be determined."""
    begin = max((n for n, each in enumerate(requests) if each.beside is not None), default=0)
    known = requests[begin:]
    steps = (
        (now.counted - before.counted, now.prompt - before.prompt)
        for before, now in pairwise(known)
        if before.window == now.window
    )
    scale = scale_by_growth(steps)
    if scale is None and known and known[0].beside is not None:
        first = known[0]
        return scale_by_growth([(first.counted, first.prompt - known[0].beside)])
    return scale


def scale_by_growth(steps: Iterable[tuple[int, int]]) -> float | None:
    """Return how many tokens a provider counts for one of ours; None if that cannot be determined.

    A step is by how much a window grew from one request to the next: as we count it, and as the provider
    reports it. What is sent besides the messages cancels out. A step that no tokenizer explains is
    ignored: something was sent that we do not see.
    """
    sound = [
        (counted, reported)
        for counted, reported in steps
        if counted > 0 and LOWEST <= reported / counted <= HIGHEST
    ]
    grown = sum(counted for counted, _ in sound)
    if grown < _LEAST_GROWTH:
        return None
    return sum(reported for _, reported in sound) / grown
