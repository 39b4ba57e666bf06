"""Insight: where the tokens of a recorded session went, what was garbage, and what it cost."""

from ctxgc.insight.analysis import analyze_transcript
from ctxgc.insight.local import LocalSession, find_sessions, peek
from ctxgc.insight.report import SCHEMA, Insight

__all__ = ["SCHEMA", "Insight", "LocalSession", "analyze_transcript", "find_sessions", "peek"]
