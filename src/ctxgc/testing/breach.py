"""`Breach`: what a provider would refuse in a request, in the provider's own words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ctxgc.errors import InputError

Format = Literal["openai", "responses", "anthropic"]
Json: TypeAlias = Mapping[str, Any]
Body: TypeAlias = Mapping[str, Any] | Sequence[Any]


@dataclass(frozen=True, slots=True)
class Breach:
    """One broken rule of a provider.

    `rule` is our stable name for it, `message` the text the provider sends, `param` the field it
    points at, `code` its machine-readable code where it has one, `index` the offending message.
    """

    rule: str
    message: str
    param: str | None = None
    code: str | None = None
    status: int = 400
    index: int | None = None


def history_of(body: Body, field: str) -> Sequence[Any]:
    """Return the history of a request body, or the list itself when only a list was given."""
    history = body.get(field, []) if isinstance(body, Mapping) else body
    if isinstance(history, str) or not isinstance(history, Sequence):
        raise InputError(
            f"`{field}` must be a list of messages, got {type(history).__name__}",
            hint="pass the request body or its list of messages",
            field=field,
        )
    return history


def without(breaches: Iterable[Breach], ignore: Iterable[str]) -> list[Breach]:
    """Return the breaches whose rule is not among the ignored ones, in order."""
    ignored = frozenset(ignore)
    return [breach for breach in breaches if breach.rule not in ignored]


def is_json(text: Any) -> bool:
    """Return whether a text is one JSON value, strictly (no NaN)."""
    if not isinstance(text, str):
        return False
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)
