"""ctxgc: a garbage collector for the context of LLM agents."""

from ctxgc._version import __version__
from ctxgc.core.engine import GCEngine, IGCEngine
from ctxgc.core.plan import PruningCandidate, PruningPlan
from ctxgc.core.segment import ContextSegment
from ctxgc.errors import CtxgcError

__all__ = [
    "ContextSegment",
    "CtxgcError",
    "GCEngine",
    "IGCEngine",
    "PruningCandidate",
    "PruningPlan",
    "__version__",
]
