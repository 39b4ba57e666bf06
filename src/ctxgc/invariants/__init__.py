"""The promises about a view: what is broken in it, and where it may be cut.

`pairing` says what an invariant is and reports, and matches calls with results once for all of them; `rules`
has one invariant for each rule that a provider checks; `checks` runs them all for a format and groups the
messages that live and die together.

Planner, checker, doctor, repairs and tests use these same objects. They read `Message` and `Part` only.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.invariants.checks import (
        ALL_INVARIANTS, HistoryGroups, anchors, check, cuts, for_format, groups,
    )
    from ctxgc.invariants.pairing import (
        Batch, Paired, Pairing, Ref, Violation, block_of, is_thinking, may_stay_open, pair,
        positions_outside, tool_channel,
    )
    from ctxgc.invariants.rules import (
        ArgumentsAreJson, CallsAndResultsPair, ContentIsPresent, ItemsAreUnique, OneResultPerCall,
        ResultsFollowTheirBatch, ServerToolsPair, ThinkingIsFollowed, ThinkingIsWhole,
        UserSpeaksFirst, changed_thinking, first_difference, first_spoken, follow, followers,
        has_valid_arguments, is_blank, is_excused, is_json, is_pending, lacks_content, last_answer,
        may_be_empty, misplaced, missing_seal, repeated_items, running, server_pairs,
        trailing_results,
    )
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "checks": "ALL_INVARIANTS HistoryGroups anchors check cuts for_format groups",
            "pairing":
                "Batch Paired Pairing Ref Violation block_of is_thinking may_stay_open pair "
                "positions_outside tool_channel",
            "rules":
                "ArgumentsAreJson CallsAndResultsPair ContentIsPresent ItemsAreUnique "
                "OneResultPerCall ResultsFollowTheirBatch ServerToolsPair ThinkingIsFollowed "
                "ThinkingIsWhole UserSpeaksFirst changed_thinking first_difference first_spoken "
                "follow followers has_valid_arguments is_blank is_excused is_json is_pending "
                "lacks_content last_answer may_be_empty misplaced missing_seal repeated_items "
                "running server_pairs trailing_results",
        },
    )
