"""The promises about a view: what is broken in it, and where it may be cut.

`violation` says what an invariant is and what it reports; `rules` has one for each rule that a provider
checks, `verbatim` those about thinking; `checks` runs them all for a format. `pairing` matches calls with
results once for all of them, `bonds` groups the messages that live and die together.

Planner, checker, doctor, repairs and tests use these same objects. They read `Message` and `Part` only.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.invariants.bonds import Growing, anchors, groups
    from ctxgc.invariants.checks import ALL_INVARIANTS, check, cuts, for_format
    from ctxgc.invariants.pairing import (
        Batch, Paired, Pairing, Ref, is_thinking, may_stay_open, pair, tool_channel,
    )
    from ctxgc.invariants.rules import (
        ArgumentsAreJson, CallsAndResultsPair, ContentIsPresent, ItemsAreUnique, OneResultPerCall,
        ResultsFollowTheirBatch, ServerToolsPair, ThinkingIsFollowed, UserSpeaksFirst, first_spoken,
        follow, followers, has_valid_arguments, is_blank, is_excused, is_json, is_pending,
        lacks_content, last_answer, may_be_empty, misplaced, repeated_items, running, server_pairs,
        trailing_results,
    )
    from ctxgc.invariants.verbatim import (
        ThinkingIsWhole, changed_thinking, first_difference, missing_seal,
    )
    from ctxgc.invariants.violation import Violation, block_of, positions_outside
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "bonds": "Growing anchors groups",
            "checks": "ALL_INVARIANTS check cuts for_format",
            "pairing": "Batch Paired Pairing Ref is_thinking may_stay_open pair tool_channel",
            "rules":
                "ArgumentsAreJson CallsAndResultsPair ContentIsPresent ItemsAreUnique "
                "OneResultPerCall ResultsFollowTheirBatch ServerToolsPair ThinkingIsFollowed "
                "UserSpeaksFirst first_spoken follow followers has_valid_arguments is_blank "
                "is_excused is_json is_pending lacks_content last_answer may_be_empty misplaced "
                "repeated_items running server_pairs trailing_results",
            "verbatim": "ThinkingIsWhole changed_thinking first_difference missing_seal",
            "violation": "Violation block_of positions_outside",
        },
    )
