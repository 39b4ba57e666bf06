"""Regimes: the size of the window that a run must fit into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ctxgc.errors import ConfigError
from ctxgc.lab.facts import total_weight
from ctxgc.lab.policies import RegimeKind

COST_LIMIT = 200_000
_HEAD_ROLES = ("system", "developer")


class Regime(msgspec.Struct, frozen=True, kw_only=True):
    """In COST there is enough room and pruning only saves money; in WINDOW it is necessary.

    A window is the head and a `share` of the rest of the run, or a fixed number of `tokens`.
    """

    kind: RegimeKind = "cost"
    share: float | None = None
    tokens: int | None = None

    @property
    def name(self) -> str:
        """The spelling that `parse_regime` reads."""
        if self.share is not None:
            return f"{self.kind}:{100 * self.share:g}%"
        return self.kind if self.tokens is None else f"{self.kind}:{self.tokens}"

    def limit(self, messages: Sequence[dict[str, Any]]) -> int:
        """Return the size of the window for a run, in tokens."""
        if self.share is None:
            return COST_LIMIT if self.tokens is None else self.tokens
        head = total_weight(messages[i] for i in head_of(messages))
        return head + int(self.share * (total_weight(messages) - head))


def parse_regime(text: str) -> Regime:
    """Return the regime that a text such as `cost`, `window:50%` or `window:40000` names.

    Raises:
        ConfigError: it names none.
    """
    kind, _, size = text.partition(":")
    if text == "cost":
        return Regime()
    number = size.removesuffix("%")
    if kind != "window" or not number.isascii() or not number.isdigit() or int(number) < 1:
        raise ConfigError(
            f"regime: unknown regime {text!r}",
            hint="use cost, window:50% or window:40000",
            field="regime",
        )
    if size.endswith("%"):
        return Regime(kind="window", share=int(number) / 100)
    return Regime(kind="window", tokens=int(number))


def head_of(messages: Sequence[dict[str, Any]]) -> list[int]:
    """Return the indexes of the system messages and of the first user message."""
    first = next((i for i, m in enumerate(messages) if m.get("role") == "user"), None)
    return [i for i, m in enumerate(messages) if m.get("role") in _HEAD_ROLES or i == first]
