"""ContextUsage: how full the context is, as an object and as the mapping that plugins read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from ctxgc.guard.zones import Zone


@dataclass(frozen=True, kw_only=True)
class ContextUsage(Mapping[str, Any]):
    """The size of the context now. `usage["percent_used"]` and `usage.get(...)` work as well.

    `target_tokens` is where a collection would land; `pinned_message_ids` may never leave.
    """

    total_tokens: int
    context_limit: int
    percent_used: float
    zone: Zone
    turns: int
    messages: int
    by_source: dict[str, int]
    by_type: dict[str, int]
    by_policy: dict[str, int]
    target_tokens: int
    stashed_tokens: int = 0
    exact: bool = True
    pinned_message_ids: frozenset[str] = frozenset()

    def __getitem__(self, key: str) -> Any:
        if key not in _NAMES:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-ready data."""
        pinned = sorted(self.pinned_message_ids)
        return {**self, "zone": self.zone.value, "pinned_message_ids": pinned}


_NAMES: tuple[str, ...] = tuple(field.name for field in fields(ContextUsage))
