"""The providers' message formats: read, render, edit, check and repair.

What is not edited stays byte-identical (P16).

- `messages`: which format a history is in, `parse` into parts, `render` back, texts read once.
- `anthropic`, `openai_chat`, `openai_responses`: one format each; `blocks`: fields, media and tool results,
  which they share; `json_text`: JSON with limits.
- `edit`: another text or other arguments, fewer parts. `validation`, `repairs`: whole histories.
- `overflow`: whether a refusal means "too long"; `tools`: what a tool call is about.
- `transcripts`: the session files of coding agents, a room of its own.
"""

from __future__ import annotations

from ctxgc._lazy import lazy

# fmt: off
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxgc.wire.edit import (
        binds_thinking, drop_parts, replace_arguments, replace_text, strip_bound_thinking,
        text_message,
    )
    from ctxgc.wire.json_text import dump, encode
    from ctxgc.wire.messages import (
        PartTexts, RawMessage, build, detect_format, message_bytes, parse, parse_history,
        refuse_answers, render, render_json,
    )
    from ctxgc.wire.overflow import Overflow, parse_overflow
    from ctxgc.wire.repairs import Fix, RepairResult, repair
    from ctxgc.wire.tools import ToolUse, strings_of, understand
    from ctxgc.wire.validation import validate
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "edit":
                "binds_thinking drop_parts replace_arguments replace_text strip_bound_thinking "
                "text_message",
            "json_text": "dump encode",
            "messages":
                "PartTexts RawMessage build detect_format message_bytes parse parse_history "
                "refuse_answers render render_json",
            "overflow": "Overflow parse_overflow",
            "repairs": "Fix RepairResult repair",
            "tools": "ToolUse strings_of understand",
            "validation": "validate",
        },
    )
