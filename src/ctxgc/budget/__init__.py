"""What is in the context and what may leave it, by source and policy (S2).

`budget` has the sources, the policies, `SourceEntry` (one line of the budget), `InstructionBudget` (the
ledger of all entries with running sums) and `BudgetSnapshot` (the same at one moment). A session keeps one;
strategies read policies and messages from it.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.budget.budget import GCPolicy, InstructionBudget, InstructionSource, SourceEntry
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "budget": "GCPolicy InstructionBudget InstructionSource SourceEntry",
        },
    )
