"""ctxgc: a garbage collector for the context of LLM agents.

    from ctxgc import Session
    session = Session(context_limit=200_000)

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from ctxgc._lazy import lazy
from ctxgc._version import __version__

TYPE_CHECKING = False  # the constant of typing, which takes as long to load as the interpreter
if TYPE_CHECKING:
    from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource, SourceEntry
    from ctxgc.collector import GCEngine, GCRemovalItem, GCResult, GCTriggerReason, IGCEngine
    from ctxgc.config import GCConfig
    from ctxgc.core import (
        ContextSegment,
        EngineOptions,
        GCState,
        Heap,
        PruningCandidate,
        PruningPlan,
    )
    from ctxgc.errors import CtxgcError
    from ctxgc.guard import Checkpoint, ContextMonitor, ContextPruner
    from ctxgc.session import AsyncSession, ContextUsage, Session, collect
    from ctxgc.strategies import (
        GCPlugin,
        discover_gc_plugins,
        load_gc_from_file,
        load_gc_plugin,
    )
    from ctxgc.tokens import counter_for
    from ctxgc.wire import repair, validate
else:
    __getattr__, __dir__, _ = lazy(
        __name__,
        {
            "budget": "GCPolicy InstructionBudget InstructionSource SourceEntry",
            "collector": "GCEngine GCRemovalItem GCResult GCTriggerReason IGCEngine",
            "config": "GCConfig",
            "core": "ContextSegment EngineOptions GCState Heap PruningCandidate PruningPlan",
            "errors": "CtxgcError",
            "guard": "Checkpoint ContextMonitor ContextPruner",
            "session": "AsyncSession ContextUsage Session collect",
            "strategies": "GCPlugin discover_gc_plugins load_gc_from_file load_gc_plugin",
            "tokens": "counter_for",
            "wire": "repair validate",
        },
    )
del TYPE_CHECKING, lazy

__all__ = [
    "AsyncSession",
    "Checkpoint",
    "ContextMonitor",
    "ContextPruner",
    "ContextSegment",
    "ContextUsage",
    "CtxgcError",
    "EngineOptions",
    "GCConfig",
    "GCEngine",
    "GCPlugin",
    "GCPolicy",
    "GCRemovalItem",
    "GCResult",
    "GCState",
    "GCTriggerReason",
    "Heap",
    "IGCEngine",
    "InstructionBudget",
    "InstructionSource",
    "PruningCandidate",
    "PruningPlan",
    "Session",
    "SourceEntry",
    "__version__",
    "collect",
    "counter_for",
    "discover_gc_plugins",
    "load_gc_from_file",
    "load_gc_plugin",
    "repair",
    "validate",
]
