"""Careless edits of a history, the kinds that other people's trimmers and loops make."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from ctxgc.core import Format

Json = dict[str, Any]

_IDS = {"openai": "tool_call_id", "responses": "call_id", "anthropic": "tool_use_id"}


def break_history(rng: Random, history: list[Json], format: Format) -> list[Json]:  # noqa: A002
    """Return a copy of the history after one careless edit."""
    broken = copy.deepcopy(history)
    if broken:
        _EDITS[int(rng.random() * len(_EDITS))](rng, broken, format)
    return broken


def _place(rng: Random, history: list[Json]) -> int:
    return int(rng.random() * len(history))


def _message(rng: Random, history: list[Json]) -> Json:
    message = history[_place(rng, history)]
    return message if isinstance(message, dict) else {}


def _lose(rng: Random, history: list[Json], format: Format) -> None:  # noqa: A002
    del history[_place(rng, history)]


def _slice(rng: Random, history: list[Json], format: Format) -> None:  # noqa: A002
    del history[: _place(rng, history)]


def _repeat(rng: Random, history: list[Json], format: Format) -> None:  # noqa: A002
    place = _place(rng, history)
    history.insert(_place(rng, history) + 1, copy.deepcopy(history[place]))


def _swap(rng: Random, history: list[Json], format: Format) -> None:  # noqa: A002
    one, other = _place(rng, history), _place(rng, history)
    history[one], history[other] = history[other], history[one]


def _interrupt(rng: Random, history: list[Json], format: Format) -> None:  # noqa: A002
    history.insert(_place(rng, history), {"role": "user", "content": "stop"})


def _empty(rng: Random, history: list[Json], format: Format) -> None:  # noqa: A002
    message = _message(rng, history)
    message["content"] = ("", None, [], [{"type": "text", "text": " "}])[int(rng.random() * 4)]


def _rename(rng: Random, history: list[Json], format: Format) -> None:  # noqa: A002
    for block in _blocks(_message(rng, history)):
        if _IDS[format] in block:
            block[_IDS[format]] = "call_1"


def _garble(rng: Random, history: list[Json], format: Format) -> None:  # noqa: A002
    message = _message(rng, history)
    for call in message.get("tool_calls") or ():
        if "function" in call:
            call["function"]["arguments"] = '{"cut": "of'
    if "arguments" in message:
        message["arguments"] = ""


def _unsign(rng: Random, history: list[Json], format: Format) -> None:  # noqa: A002
    for block in _blocks(_message(rng, history)):
        block.pop("signature", None)


def _lose_block(rng: Random, history: list[Json], format: Format) -> None:  # noqa: A002
    message = _message(rng, history)
    for key in ("content", "tool_calls"):
        if isinstance(message.get(key), list) and message[key]:
            del message[key][int(rng.random() * len(message[key]))]


def _alien(rng: Random, history: list[Json], format: Format) -> None:  # noqa: A002
    strange: list[Any] = [
        {"role": "narrator", "content": "x"},
        {},
        {"role": "user", "content": 7},
        3,
    ]
    history.insert(_place(rng, history), strange[int(rng.random() * len(strange))])


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    blocks = (
        [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    )
    return [message, *blocks]


_EDITS: tuple[Callable[[Random, list[Json], Format], None], ...] = (
    _lose, _slice, _repeat, _swap, _interrupt, _empty, _rename, _garble, _unsign, _lose_block, _alien,
)  # fmt: skip
