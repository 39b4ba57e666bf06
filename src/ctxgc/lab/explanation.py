"""What an explanation holds: a decision of one request, and what came of it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ctxgc.lab.residency import State
from ctxgc.lab.runs import Run

_TARGETS = ("file_path", "path", "command", "cmd", "pattern", "query", "url")
_LONGEST = 90


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """A fact of something that had left, needed by a later request, and what had become of it."""

    fact: str
    request: int
    state: State


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """A message that left the view or was shortened, why, and how it was missed.

    Attributes:
        index: its number in the run.
        role: who said it; `tool` and `target` are the call that it answers, or makes.
        tokens: its size as it came; `left`: of what stands in its place, 0 if nothing does.
        reason: the plan's.
        instead: the beginning of what stands in its place.
        uses: needs of later requests that it had held.
        lines: lines of it that were quoted later; `lines_kept`: those still in the view then.
    """

    index: int
    role: str
    tool: str
    target: str
    tokens: int
    left: int
    reason: str
    instead: str
    uses: list[Use]
    lines: int
    lines_kept: int


class Money(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision cost and won, in tokens and in units of one plain input token.

    Attributes:
        sent: the tokens of the request; `cached`: those read from the cache.
        removed: how much smaller the view is than it would have been.
        rewritten: tokens that had been sent before and had to be written again.
        returned: tokens that came back into the view, recalled, or as a notice.
        price: what this request cost more than it would have; negative if less.
        saving: what each later request costs less; `requests_left`: how many there were.
        net: what was won in the end, had nothing else changed.
        payback: after how many requests the price was earned; None if never.
        is_cold: the cache had expired, so that everything was written anyway.
    """

    sent: int
    cached: int
    removed: int
    rewritten: int
    returned: int
    price: float
    saving: float
    requests_left: int
    net: float
    payback: int | None
    is_cold: bool


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """A collection of the session: what called for it, and its size before and after."""

    trigger: str
    tokens_before: int
    tokens_after: int
    shortfall: int
    error: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One request of one run under one policy.

    `others` are the requests at which something left; without `departures` nothing did at this one.
    """

    run: str
    policy: str
    regime: str
    sheet: str
    limit: int
    request: int
    requests: int
    messages: int
    collections: list[Collection]
    departures: list[Departure]
    money: Money
    others: list[int]


def described(run: Run, index: int) -> tuple[str, str, str]:
    """Return the role of a message, and the tool and target of the call that it makes or answers."""
    message = run.messages[index]
    role = str(message.get("role", ""))
    calls = message.get("tool_calls") or _calls_of(run, index, message.get("tool_call_id"))
    if not calls:
        return role, "", _shortened(str(message.get("content") or ""))
    function = calls[0].get("function", {})
    return role, str(function.get("name", "")), _target(str(function.get("arguments", "")))


def _calls_of(run: Run, index: int, call_id: object) -> list[dict[str, Any]]:
    """Return the nearest call before a message that has this id."""
    for message in reversed(run.messages[:index]):
        for call in message.get("tool_calls") or ():
            if call_id is not None and call.get("id") == call_id:
                return [call]
    return []


def _target(arguments: str) -> str:
    try:
        given = json.loads(arguments)
    except ValueError:
        return _shortened(arguments)
    if not isinstance(given, dict):
        return _shortened(arguments)
    named = next((str(given[key]) for key in _TARGETS if given.get(key)), "")
    return _shortened(named or arguments)


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 3]}..."
