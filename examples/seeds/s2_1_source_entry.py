"""S2 1 "Add Timestamp" and "Budget Entry Reference", blocks 1 and 14: one line of a budget."""

import time
from dataclasses import dataclass, field, fields
from typing import Any, Dict, List, Optional

import ctxgc
from ctxgc import GCPolicy, InstructionBudget, InstructionSource

# -- block 1


@dataclass
class SourceEntry:
    source: InstructionSource
    tokens: int
    gc_policy: GCPolicy
    label: Optional[str] = None
    children: Dict[str, "SourceEntry"] = field(default_factory=dict)
    metadata: Dict[str, Any] = field(default_factory=dict)
    created_at: Optional[float] = None  # NEW: Unix timestamp for recency tracking

    def __post_init__(self):
        if self.created_at is None:
            self.created_at = time.time()


First = SourceEntry

# -- block 14


@dataclass
class SourceEntry:
    source: InstructionSource
    tokens: int
    gc_policy: GCPolicy
    label: Optional[str] = None
    children: Dict[str, "SourceEntry"] = field(default_factory=dict)
    metadata: Dict[str, Any] = field(default_factory=dict)
    created_at: Optional[float] = None
    message_ids: List[str] = field(default_factory=list)  # NEW: Associated message IDs


# -- ours: the same fields in the same order; `message_ids` is a tuple in it

required = (InstructionSource.CONVERSATION, 12, GCPolicy.PARTIAL)
full = (*required, "a turn", {}, {"by": "me"}, 1.5)
for theirs, given in ((First, required), (First, full), (SourceEntry, (*full, ["m1", "m2"]))):
    before = time.time()
    made, ours = theirs(*given), ctxgc.SourceEntry(*given)
    for name in (each.name for each in fields(made)):
        value = getattr(ours, name)
        if name == "created_at" and len(given) < 7:
            assert before <= value <= time.time()
        else:
            assert value == (tuple(made.message_ids) if name == "message_ids" else getattr(made, name))

# Update `to_dict()` and `restore_conversation_from_snapshot()` to include `created_at`.
budget = InstructionBudget(context_limit=1_000)
budget.add_child(InstructionSource.CONVERSATION, "turn_0", 12, GCPolicy.PARTIAL, created_at=1.5)
saved = budget.to_dict()
budget.remove_child(InstructionSource.CONVERSATION, "turn_0")
budget.restore_conversation_from_snapshot(saved)
assert budget.get_child(InstructionSource.CONVERSATION, "turn_0").created_at == 1.5
