"""Collection strategies, each a `GCPlugin` that is found by its name.

`none` keeps all; `truncate` drops the oldest turns; `summarize` and `hybrid` compress them; `budget` goes
by policy; `mark_sweep`, the default, goes by reachability and loses nothing. `base` is the contract that a
plugin of any package keeps, `plugins` finds and loads them. Built-in strategies share a frame and a
draft of the new history (`builtin`), the services of their session with what must stay (`host`), and the
names that a budget has for messages (`booking`). `segmenter` makes segments of messages.

Others use the contract (`GCPlugin`, `GCResult`, ...), the loaders and `Segmenter`; a session also uses
what collects for the price (`PriceRequest` and the names around it).
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.strategies.base import (
        Constraints, GCPlugin, GCRemovalItem, GCResult, GCTriggerReason, run_collect,
    )
    from ctxgc.strategies.booking import with_messages
    from ctxgc.strategies.builtin import BuiltinStrategy, CollectionRun, serving
    from ctxgc.strategies.host import (
        Host, frame_of, locked_messages, root_knobs, root_messages, turn_ids,
    )
    from ctxgc.strategies.mark_sweep.digest import (
        DigestEntry, handle_of, handles_in, without, write_digest,
    )
    from ctxgc.strategies.mark_sweep.presets import (
        Coefficients, PRESETS, Preset, Shares, coefficients, custom, preset,
    )
    from ctxgc.strategies.mark_sweep.price import PriceRequest, Thrift
    from ctxgc.strategies.mark_sweep.rounds import Billing, Edit
    from ctxgc.strategies.mark_sweep.scene import (
        WindowConstants, WindowFile, window_constants, window_file,
    )
    from ctxgc.strategies.mark_sweep.strategy import MarkSweepStrategy
    from ctxgc.strategies.none import NoneStrategy
    from ctxgc.strategies.plugins import (
        BUILT_IN, PluginFailure, discover_gc_plugins, gc_from_inline, gc_from_spec,
        load_gc_from_file, load_gc_plugin,
    )
    from ctxgc.strategies.segmenter import Exchange, Segmenter
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "base": "Constraints GCPlugin GCRemovalItem GCResult GCTriggerReason run_collect",
            "booking": "with_messages",
            "builtin": "BuiltinStrategy CollectionRun serving",
            "host": "Host frame_of locked_messages root_knobs root_messages turn_ids",
            "mark_sweep.digest": "DigestEntry handle_of handles_in without write_digest",
            "mark_sweep.presets": "Coefficients PRESETS Preset Shares coefficients custom preset",
            "mark_sweep.price": "PriceRequest Thrift",
            "mark_sweep.rounds": "Billing Edit",
            "mark_sweep.scene": "WindowConstants WindowFile window_constants window_file",
            "mark_sweep.strategy": "MarkSweepStrategy",
            "none": "NoneStrategy",
            "plugins":
                "BUILT_IN PluginFailure discover_gc_plugins gc_from_inline gc_from_spec "
                "load_gc_from_file load_gc_plugin",
            "segmenter": "Exchange Segmenter",
        },
    )
