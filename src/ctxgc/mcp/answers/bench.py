"""The bench: what it takes to answer for one context, beside the context itself."""

from __future__ import annotations

from typing import Any

import msgspec

from ctxgc.guard import CheckpointShelf
from ctxgc.mcp.context import Context
from ctxgc.mcp.finding import Finder
from ctxgc.mcp.plans import Plans
from ctxgc.mcp.roots import AllowedRoots
from ctxgc.stores import Store
from ctxgc.tokens import TokenCounter

Json = dict[str, Any]
MOST_LISTED = 50
"""How many ids of one kind an answer names."""


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """Store, plans, allowed roots and counter; `alone` when no other caller shares the store."""

    store: Store
    session_id: str
    plans: Plans
    roots: AllowedRoots
    counter: TokenCounter
    alone: bool

    def finder(self, context: Context) -> Finder:
        """Return what finds segments by any reference."""
        return Finder(context, self.store, self.session_id)

    def shelf(self) -> CheckpointShelf:
        """Return where the checkpoints are kept."""
        return CheckpointShelf(self.store, self.session_id)
