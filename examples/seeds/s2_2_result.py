"""S2 2 "Add Removal List", block 2: what a collection says that it did."""

from dataclasses import dataclass, field, fields
from typing import Any, Dict, List, Optional

import ctxgc
from ctxgc import GCTriggerReason, InstructionSource

# -- the block


@dataclass
class GCRemovalItem:
    """Describes a single item to be removed from budget."""
    source: InstructionSource
    child_key: Optional[str] = None  # None = remove entire source, str = specific child
    tokens_freed: int = 0
    reason: str = ""  # e.g., "ephemeral", "oldest_turn", "summarized"


@dataclass
class GCResult:
    success: bool
    items_collected: int
    tokens_before: int
    tokens_after: int
    plugin_name: str
    trigger_reason: GCTriggerReason
    notification: Optional[str] = None
    details: Dict[str, Any] = field(default_factory=dict)
    error: Optional[str] = None

    # NEW: Structured removal list for budget synchronization
    removal_list: List[GCRemovalItem] = field(default_factory=list)


# -- ours: the same fields in the same order, and some more

for given in (
    (InstructionSource.ENRICHMENT,),
    (InstructionSource.CONVERSATION, "turn_3", 120, "oldest_turn"),
):
    theirs, ours = GCRemovalItem(*given), ctxgc.GCRemovalItem(*given)
    assert all(getattr(ours, f.name) == getattr(theirs, f.name) for f in fields(theirs))

for given in (
    (True, 1, 500, 380, "gc_truncate", GCTriggerReason.MANUAL),
    (False, 0, 5, 5, "gc_mine", GCTriggerReason.THRESHOLD, "told", {"a": 1}, "failed", []),
):
    theirs, ours = GCResult(*given), ctxgc.GCResult(*given)
    assert all(getattr(ours, f.name) == getattr(theirs, f.name) for f in fields(theirs))

first, second = (ctxgc.GCResult(True, 0, 5, 5, "p", GCTriggerReason.MANUAL) for _ in range(2))
assert first.removal_list is not second.removal_list and first.details is not second.details
