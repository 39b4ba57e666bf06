"""The providers' message formats: read, write, edit, check and repair.

What is not edited leaves byte-identical (P16).
"""

from ctxgc.wire.answers import refuse_answers
from ctxgc.wire.binding import binds_thinking, strip_bound_thinking
from ctxgc.wire.detect import detect_format
from ctxgc.wire.draft import Fix
from ctxgc.wire.edit import drop_parts, replace_arguments, replace_text, text_message
from ctxgc.wire.messages import (
    RawMessage,
    message_bytes,
    parse,
    parse_history,
    render,
    render_json,
)
from ctxgc.wire.overflow import Overflow, parse_overflow
from ctxgc.wire.repairs import RepairResult, repair
from ctxgc.wire.validation import validate

__all__ = [
    "Fix",
    "Overflow",
    "RawMessage",
    "RepairResult",
    "binds_thinking",
    "detect_format",
    "drop_parts",
    "message_bytes",
    "parse",
    "parse_history",
    "parse_overflow",
    "refuse_answers",
    "render",
    "render_json",
    "repair",
    "replace_arguments",
    "replace_text",
    "strip_bound_thinking",
    "text_message",
    "validate",
]
