"""What is in the context and what may leave it: sources, policies, entries, the ledger of both."""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.budget.budget import BudgetSnapshot, InstructionBudget
    from ctxgc.budget.entry import GCPolicy, InstructionSource, SourceEntry
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "budget": "BudgetSnapshot InstructionBudget",
            "entry": "GCPolicy InstructionSource SourceEntry",
        },
    )
