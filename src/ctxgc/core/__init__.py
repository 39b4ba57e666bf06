"""Pure functions and plain data, without clock, randomness, files or network.

`segment` is the smallest thing that is kept or moved, and the provider message it is a part of. The `heap`
holds all segments of one session with their headers and the token ledger; `links` are what ties them: rare
names, bonds, shared keys, supersession; `codec` writes a heap as JSON. `roots` (with their index) and `mark`
find what is reachable, `score` what it is worth; `plan` is what leaves, as data, and `options` are how an
engine decides. `text` reads a text once, `tombstone` writes and recognises every note that ctxgc leaves in a
view, `secrets` finds keys in it, and `recall_memory` knows what was recalled lately.

Every other room may use this one; it uses only `errors`.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.core.heap import Amount, Heap, Ledger, each_once, rough_tokens
    from ctxgc.core.links import (
        Bonds, KEY_KINDS, KeyKind, RARE, WHOLE, bond_of, ids, is_outlived, keys_of, members,
    )
    from ctxgc.core.mark import Marks, ancestry, mark_all, mark_young, reachable
    from ctxgc.core.options import EngineOptions, Scope, age, checked_scope, in_scope
    from ctxgc.core.plan import (
        Action, Evidence, EvidenceKind, IN_PLACE, Occasion, PruningCandidate, PruningPlan,
        age_text, assemble, candidate_for, checked_target, plan_summary,
    )
    from ctxgc.core.recall_memory import RecallMemory
    from ctxgc.core.roots import (
        GCState, RootKnobs, RootSet, SESSION_INVARIANT, compute_roots, is_message, is_request,
        marked_roots, message_key, named_roots,
    )
    from ctxgc.core.score import Explanation, KeepScore, POINTS_TYPE, ScoreContext, prune_score
    from ctxgc.core.secrets import (
        find_secrets, mask_secrets, masked_data, without_passwords,
    )
    from ctxgc.core.segment import (
        Access, ContextSegment, FORMATS, Format, Message, Origin, Part, PartKind, Policy, Role,
        SECRET_TAG, SEGMENT_FIELDS, SegmentType, Source, Tier, Trust, checked_time, common_prefix,
        explicit_references, put_away, segment_from_dict, segment_to_dict, utc_now,
        without_strays,
    )
    from ctxgc.core.text import (
        LONG_LINE, Names, Text, identifiers, is_line, is_word, looks_like_path, pieces_of, tokens,
    )
    from ctxgc.core.tombstone import (
        GAP, HANDLE, OPENING, RECALL_CALL, RECALL_TOOL, SEARCH_TOOL, SHORT_GAP, copy_mark, describe,
        is_tombstone, kept_of, looks_like_ours, moved_handles, moved_note, note, points_back, quotable,
        recall_call, recall_template, search_call, short_command, short_tombstone, long_tombstone, with_gaps,
    )
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "heap": "Amount Heap Ledger each_once rough_tokens",
            "links":
                "Bonds KEY_KINDS KeyKind RARE WHOLE bond_of ids is_outlived keys_of members",
            "mark": "Marks ancestry mark_all mark_young reachable",
            "options": "EngineOptions Scope age checked_scope in_scope",
            "plan":
                "Action Evidence EvidenceKind IN_PLACE Occasion PruningCandidate PruningPlan age_text "
                "assemble candidate_for checked_target plan_summary",
            "recall_memory": "RecallMemory",
            "roots":
                "GCState RootKnobs RootSet SESSION_INVARIANT compute_roots is_message is_request "
                "marked_roots message_key named_roots",
            "score": "Explanation KeepScore POINTS_TYPE ScoreContext prune_score",
            "secrets": "find_secrets mask_secrets masked_data without_passwords",
            "segment":
                "Access ContextSegment FORMATS Format Message Origin Part PartKind Policy Role "
                "SECRET_TAG SEGMENT_FIELDS SegmentType Source Tier Trust checked_time "
                "common_prefix explicit_references put_away segment_from_dict segment_to_dict utc_now "
                "without_strays",
            "text": "LONG_LINE Names Text identifiers is_line is_word looks_like_path pieces_of tokens",
            "tombstone":
                "GAP HANDLE OPENING RECALL_CALL RECALL_TOOL SEARCH_TOOL SHORT_GAP copy_mark describe "
                "is_tombstone "
                "kept_of looks_like_ours moved_handles moved_note note points_back quotable "
                "recall_call recall_template search_call short_command short_tombstone long_tombstone "
                "with_gaps",
        },
    )
