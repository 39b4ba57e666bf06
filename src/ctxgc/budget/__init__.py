"""What is in the context and what may leave it, by source and policy (S2).

`entry` has the sources, the policies, `SourceEntry` (one line of a budget) and `BudgetSnapshot` (all lines at
one moment); `budget` has `InstructionBudget`, the ledger of all entries with running sums. A session keeps
one; strategies read policies and messages from it.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.budget.budget import InstructionBudget
    from ctxgc.budget.entry import GCPolicy, InstructionSource, SourceEntry
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "budget": "InstructionBudget",
            "entry": "GCPolicy InstructionSource SourceEntry",
        },
    )
