"""Insight: what a session spent, lost and would save. The one place that makes figures; doors show them.

`analyze_transcript` (`analysis`, from `measurement`, `survey`, `garbage` and `replay`) returns an
`Insight` (`report`); `cost` has the dollars,
`cache_life` those of a session whose cache lapses. `live` follows a session while its agent works,
`own_session` the one of the agent that started this process;
`local_sessions` finds the sessions on this machine, and `overview` puts each in a row. `fill` counts the
window for all of them. `prune_proposal` says what pruning a transcript would
do and returns the new file, `transcript_edit` repairs one, `session_conversion` makes one for another
agent, `history_diff` compares two histories, and `segment_reason` explains where a stored segment is.
`timeline` is the window of a session at each of its requests (`recorded_timeline`, `stored_timeline`),
`session_rows` lists all sessions, `session_tokens` says what ate their tokens, `next_collection` tries the
next collection on a copy, and `earlier_session` goes back to where an agent compacted.
`session_check` finds secrets and broken budgets, `session_past` what compactions removed and where a phrase
came from. `clock` shows the times of a transcript to what replays it.

For doors it also offers what opens transcripts. Nothing here changes a file.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.core import age_text
    from ctxgc.insight.analysis import analyze_transcript
    from ctxgc.insight.bill import Bill, BillLine, bill_cost, bill_sentence
    from ctxgc.insight.earlier_session import EarlierSession, before_compaction
    from ctxgc.insight.cache_life import (
        ColdMoment, answer_spend, cold_moment, request_prices,
    )
    from ctxgc.insight.cost import (
        COST_VIEWS, CostedRequest, CostReport, SessionCost, Spend, prices_in_use, session_cost,
        session_requests, total_cost,
    )
    from ctxgc.insight.fill import WindowFill, window_limit
    from ctxgc.insight.garbage import Garbage
    from ctxgc.insight.history_diff import (
        ComparedHistory, HistoryDifference, compared_history, history_changes,
    )
    from ctxgc.insight.live import LiveWindow, RequestSample, SessionFollower, ToolSample
    from ctxgc.insight.local_sessions import (
        SessionFile, claude_folder, codex_folder, find_sessions, limit_for, project_of,
        resume_command, session_folders, RESUME,
    )
    from ctxgc.insight.measurement import ProgressCallback
    from ctxgc.insight.next_collection import (
        NextCollection, context_limit_of, model_of, recorded_next, stored_next,
    )
    from ctxgc.insight.overview import LocalSession, session_overview
    from ctxgc.insight.own_session import OwnSession
    from ctxgc.insight.prune_proposal import (
        PRESETS, Proposal, ProposalRow, PruneTarget, propose_pruning, pruned_transcript,
        stored_session_id,
    )
    from ctxgc.insight.recorded_timeline import recorded_detail, timeline_of
    from ctxgc.insight.report import Insight, SCHEMA, UsageRow
    from ctxgc.insight.segment_reason import (
        SegmentDetail, SegmentReason, explain_segment, stored_detail,
    )
    from ctxgc.insight.session_check import (
        BudgetResult, FoundSecret, SessionBudgets, check_session, scan_secrets, transcript_files,
    )
    from ctxgc.insight.session_conversion import CONVERTIBLE, SessionConversion, convert_session
    from ctxgc.insight.session_past import (
        NameOrigin, Occurrence, PhraseTrace, RemovedPart, SessionCompaction, session_compactions,
        trace_phrase,
    )
    from ctxgc.insight.session_rows import (
        SessionList, ListedSession, recorded_row_id, stored_row_id,
    )
    from ctxgc.insight.session_tokens import SessionTokens, recorded_tokens, stored_tokens
    from ctxgc.insight.stored_timeline import timeline_of_stored
    from ctxgc.insight.timeline import SessionTimeline, segment_label
    from ctxgc.insight.transcript_edit import broken_rules, damaged_lines, repair_transcript
    from ctxgc.wire.transcripts import Damage, Writable, open_transcript, open_writable
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "ctxgc.core": "age_text",
            "analysis": "analyze_transcript",
            "bill": "Bill BillLine bill_cost bill_sentence",
            "earlier_session": "EarlierSession before_compaction",
            "cache_life": "ColdMoment answer_spend cold_moment request_prices",
            "cost":
                "COST_VIEWS CostedRequest CostReport SessionCost Spend prices_in_use session_cost "
                "session_requests total_cost",
            "fill": "WindowFill window_limit",
            "garbage": "Garbage",
            "history_diff": "ComparedHistory HistoryDifference compared_history history_changes",
            "live": "LiveWindow RequestSample SessionFollower ToolSample",
            "local_sessions":
                "SessionFile claude_folder codex_folder find_sessions limit_for project_of "
                "resume_command session_folders RESUME",
            "measurement": "ProgressCallback",
            "next_collection":
                "NextCollection context_limit_of model_of recorded_next stored_next",
            "overview": "LocalSession session_overview",
            "own_session": "OwnSession",
            "prune_proposal":
                "PRESETS Proposal ProposalRow PruneTarget propose_pruning pruned_transcript "
                "stored_session_id",
            "recorded_timeline": "recorded_detail timeline_of",
            "report": "Insight SCHEMA UsageRow",
            "segment_reason": "SegmentDetail SegmentReason explain_segment stored_detail",
            "session_check":
                "BudgetResult FoundSecret SessionBudgets check_session scan_secrets "
                "transcript_files",
            "session_conversion": "CONVERTIBLE SessionConversion convert_session",
            "session_past":
                "NameOrigin Occurrence PhraseTrace RemovedPart SessionCompaction "
                "session_compactions trace_phrase",
            "session_rows": "SessionList ListedSession recorded_row_id stored_row_id",
            "session_tokens": "SessionTokens recorded_tokens stored_tokens",
            "stored_timeline": "timeline_of_stored",
            "timeline": "SessionTimeline segment_label",
            "transcript_edit": "broken_rules damaged_lines repair_transcript",
            "ctxgc.wire.transcripts": "Damage Writable open_transcript open_writable",
        },
    )
