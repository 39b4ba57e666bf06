"""BudgetSnapshot: a budget at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ctxgc.budget.entry import SourceEntry
from ctxgc.errors import InputError


class BudgetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A budget at one moment; later changes of the budget do not reach it."""

    context_limit: int
    entries: tuple[SourceEntry, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        entries = [entry.to_dict() for entry in self.entries]
        return {"context_limit": self.context_limit, "entries": entries}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BudgetSnapshot:
        """Return the snapshot that `to_dict` described.

        Raises:
            InputError: a field is missing, unknown or wrong.
        """
        try:
            return msgspec.convert(dict(data), cls)
        except msgspec.ValidationError as error:
            raise InputError(f"budget: {error}", hint="pass what to_dict() gave") from None
