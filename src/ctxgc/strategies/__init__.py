"""Collection strategies, each a `GCPlugin` that is found by its name.

`none` keeps all; `truncate` drops the oldest turns; `summarize` and `hybrid` compress them; `budget` goes
by policy; `mark_sweep`, the default, goes by liveness and worth and loses nothing. `base` is the contract
that a plugin of any package keeps, `plugins` finds and loads them, `builtin` is the frame of our own.

A strategy says who is chosen; everything else is the collector's.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.strategies.base import CollectsForPrice, GCPlugin, run_collect
    from ctxgc.strategies.budget import BudgetStrategy
    from ctxgc.strategies.builtin import BuiltinStrategy, serving
    from ctxgc.strategies.hybrid import HybridStrategy
    from ctxgc.strategies.mark_sweep import MarkSweepStrategy
    from ctxgc.strategies.none import NoneStrategy
    from ctxgc.strategies.plugins import (
        BUILT_IN, PluginFailure, discover_gc_plugins, gc_from_inline, gc_from_spec,
        load_gc_from_file, load_gc_plugin,
    )
    from ctxgc.strategies.summarize import SummarizeStrategy
    from ctxgc.strategies.truncate import TruncateStrategy
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "base": "CollectsForPrice GCPlugin run_collect",
            "budget": "BudgetStrategy",
            "builtin": "BuiltinStrategy serving",
            "hybrid": "HybridStrategy",
            "mark_sweep": "MarkSweepStrategy",
            "none": "NoneStrategy",
            "plugins":
                "BUILT_IN PluginFailure discover_gc_plugins gc_from_inline gc_from_spec "
                "load_gc_from_file load_gc_plugin",
            "summarize": "SummarizeStrategy",
            "truncate": "TruncateStrategy",
        },
    )
