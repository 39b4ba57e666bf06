"""S2 4 "Accept Budget", block 4: every strategy of ours is such a plugin."""

import inspect
from typing import Any, Dict, List, Optional, Protocol, Tuple, runtime_checkable

import ctxgc
from ctxgc import GCConfig, GCResult, GCTriggerReason, InstructionBudget
from ctxgc.core import Message

# -- the block


@runtime_checkable
class GCPlugin(Protocol):
    # ... existing methods ...

    def collect(
        self,
        history: List[Message],
        context_usage: Dict[str, Any],
        config: GCConfig,
        reason: GCTriggerReason,
        budget: Optional[InstructionBudget] = None  # NEW: Optional budget for policy-aware GC
    ) -> Tuple[List[Message], GCResult]:
        """Perform garbage collection.

        Args:
            history: Current conversation history.
            context_usage: Current context window usage stats.
            config: GC configuration.
            reason: Why this collection was triggered.
            budget: Optional budget for policy-aware decisions.

        Returns:
            Tuple of (new_history, result) where result includes removal_list.
        """
        ...


# -- ours

for name, make in ctxgc.discover_gc_plugins().items():
    plugin = make()
    assert isinstance(plugin, GCPlugin) and isinstance(plugin, ctxgc.GCPlugin), name
    theirs, ours = (inspect.signature(kind.collect).parameters for kind in (GCPlugin, type(plugin)))
    assert list(ours) == list(theirs) and ours["budget"].default is None, name
    new, result = plugin.collect([], {}, GCConfig(), GCTriggerReason.MANUAL)
    assert (new, result.success, result.removal_list) == ([], True, []), name
