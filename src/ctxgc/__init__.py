"""ctxgc: a garbage collector for the context of LLM agents.

    from ctxgc import Session
    session = Session(context_limit=200_000)

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from ctxgc._version import __version__

TYPE_CHECKING = False  # the constant of typing, which takes as long to load as the interpreter
if TYPE_CHECKING:
    from typing import Any

    from ctxgc.budget import GCPolicy, InstructionBudget, InstructionSource, SourceEntry
    from ctxgc.config import GCConfig
    from ctxgc.core.engine import GCEngine, IGCEngine
    from ctxgc.core.plan import PruningCandidate, PruningPlan
    from ctxgc.core.segment import ContextSegment
    from ctxgc.errors import CtxgcError
    from ctxgc.guard import Checkpoint, ContextMonitor, ContextPruner
    from ctxgc.plugins import discover_gc_plugins, load_gc_from_file, load_gc_plugin
    from ctxgc.session import ContextUsage, Session, collect
    from ctxgc.strategies.base import GCPlugin, GCRemovalItem, GCResult, GCTriggerReason
    from ctxgc.wire import repair, validate
del TYPE_CHECKING

__all__ = [
    "Checkpoint",
    "ContextMonitor",
    "ContextPruner",
    "ContextSegment",
    "ContextUsage",
    "CtxgcError",
    "GCConfig",
    "GCEngine",
    "GCPlugin",
    "GCPolicy",
    "GCRemovalItem",
    "GCResult",
    "GCTriggerReason",
    "IGCEngine",
    "InstructionBudget",
    "InstructionSource",
    "PruningCandidate",
    "PruningPlan",
    "Session",
    "SourceEntry",
    "__version__",
    "collect",
    "discover_gc_plugins",
    "load_gc_from_file",
    "load_gc_plugin",
    "repair",
    "validate",
]

_HOMES = {
    "ctxgc.budget": ("GCPolicy", "InstructionBudget", "InstructionSource", "SourceEntry"),
    "ctxgc.config": ("GCConfig",),
    "ctxgc.core.engine": ("GCEngine", "IGCEngine"),
    "ctxgc.core.plan": ("PruningCandidate", "PruningPlan"),
    "ctxgc.core.segment": ("ContextSegment",),
    "ctxgc.errors": ("CtxgcError",),
    "ctxgc.guard": ("Checkpoint", "ContextMonitor", "ContextPruner"),
    "ctxgc.plugins": ("discover_gc_plugins", "load_gc_from_file", "load_gc_plugin"),
    "ctxgc.session": ("ContextUsage", "Session", "collect"),
    "ctxgc.strategies.base": ("GCPlugin", "GCRemovalItem", "GCResult", "GCTriggerReason"),
    "ctxgc.wire": ("repair", "validate"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'ctxgc' has no attribute '{name}'")
    import importlib  # noqa: PLC0415 (a hook that has nothing to do needs nothing)

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
