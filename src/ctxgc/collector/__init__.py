"""The collector: liveness, worth, price and room lead to one plan.

`liveness` says who may leave and why: roots, marks, evidence. `worth` is what of a text is nowhere else in
the view, `price` whether leaving it out pays now, `room` how much must go. `sweep` puts candidates in their
order and takes them, `engine` is the same over bare segments. `excerpt` is what stays of one large text, and
`pending` shortens results that the model has not read. `run` is one collection of a history with its
`result`; `host` are the services it works with and what it may never take out; `segmenter` makes segments of
messages, and `booking` names them as a budget does. `reader` and `calls` know what each tool result is,
`digest` writes what stays in its place, `presets` has all constants, and `priorities` ranks segments by S4's
matrix and decision tree.

Everything that makes a view smaller goes through this room.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.collector.booking import turn_number, with_messages
    from ctxgc.collector.digest import (
        DigestEntry, handle_of, handles_in, without, without_handles, write_digest,
    )
    from ctxgc.collector.engine import Collection, GCEngine, IGCEngine, check_plan
    from ctxgc.collector.excerpt import first_lines, stub_at_birth
    from ctxgc.collector.host import (
        Bindable, Host, TurnSpan, bare_view, engine_options, frame_of, locked_messages,
        minimal_view, root_knobs, root_messages, turn_ids, whole_groups,
    )
    from ctxgc.collector.liveness import Analysis, Hop, analyze
    from ctxgc.collector.pending import pending_tokens, shorten_pending
    from ctxgc.collector.presets import (
        Coefficients, PRESETS, PROBATION, Preset, Shares, WindowConstants, WindowFile, coefficients, custom,
        preset, window_constants, window_file,
    )
    from ctxgc.collector.price import Billing, Edit, PriceCollector, PricePlan, PriceRequest
    from ctxgc.collector.priorities import (
        Category, Focus, Priority, Ranked, Weighed, essentials, kept_always, kind_of,
        plan_by_priority, rank, rank_heap, weigh,
    )
    from ctxgc.collector.probation import Certificate, NotedUse, PlannedExit, Probation
    from ctxgc.collector.result import GCRemovalItem, GCResult, GCTriggerReason, plan_of
    from ctxgc.collector.room import NEWEST, RoomPass
    from ctxgc.collector.run import CollectionRun, OLD_NOTICE
    from ctxgc.collector.segmenter import Exchange, Segmenter
    from ctxgc.collector.sweep import Planner
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "booking": "turn_number with_messages",
            "digest": "DigestEntry handle_of handles_in without without_handles write_digest",
            "engine": "Collection GCEngine IGCEngine check_plan",
            "excerpt": "first_lines stub_at_birth",
            "host":
                "Bindable Host TurnSpan bare_view engine_options frame_of locked_messages "
                "minimal_view root_knobs root_messages turn_ids whole_groups",
            "liveness": "Analysis Hop analyze",
            "pending": "pending_tokens shorten_pending",
            "presets":
                "Coefficients PRESETS PROBATION Preset Shares WindowConstants WindowFile coefficients "
                "custom preset window_constants window_file",
            "price": "Billing Edit PriceCollector PricePlan PriceRequest",
            "priorities":
                "Category Focus Priority Ranked Weighed essentials kept_always kind_of "
                "plan_by_priority rank rank_heap weigh",
            "probation": "Certificate NotedUse PlannedExit Probation",
            "result": "GCRemovalItem GCResult GCTriggerReason plan_of",
            "room": "NEWEST RoomPass",
            "run": "CollectionRun OLD_NOTICE",
            "segmenter": "Exchange Segmenter",
            "sweep": "Planner",
        },
    )
