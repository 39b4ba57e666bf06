"""What is in the context and what may leave it: sources, policies, entries, the ledger of both."""

from ctxgc.budget.budget import InstructionBudget
from ctxgc.budget.entry import SourceEntry
from ctxgc.budget.snapshot import BudgetSnapshot
from ctxgc.budget.source import GCPolicy, InstructionSource

__all__ = [
    "BudgetSnapshot",
    "GCPolicy",
    "InstructionBudget",
    "InstructionSource",
    "SourceEntry",
]
