"""Insight: where the tokens of a recorded session went, what was garbage, and what it cost."""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.insight.analysis import analyze_transcript
    from ctxgc.insight.garbage import find_garbage
    from ctxgc.insight.local import (
        LocalSession, SessionFile, claude_folder, codex_folder, find_sessions, limit_for, peek,
        project_of,
    )
    from ctxgc.insight.measured import Tell
    from ctxgc.insight.report import Insight, SCHEMA, UsageRow
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "analysis": "analyze_transcript",
            "garbage": "find_garbage",
            "local":
                "LocalSession SessionFile claude_folder codex_folder find_sessions limit_for "
                "peek project_of",
            "measured": "Tell",
            "report": "Insight SCHEMA UsageRow",
        },
    )
