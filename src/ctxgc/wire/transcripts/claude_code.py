"""Claude Code's session files: one JSON object per line, messages in Anthropic's format.

A turn of the model is written block by block, each block a line of its own with the same message id.
Every line is an entry here: an appended file can be read on from where the last reading ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxgc.wire.transcripts.entry import Entry, moment

_SPOKEN = ("user", "assistant")


def is_claude_code(line: Mapping[str, Any]) -> bool:
    """Tell whether a line is one that Claude Code wrote."""
    if "sessionId" in line and "uuid" in line:
        return True
    return line.get("type") in ("summary", "file-history-snapshot", "queue-operation")


def entry_of(line: Mapping[str, Any]) -> Entry | None:
    """Return what a line says to the model of the main conversation; None if that is nothing."""
    message = line.get("message")
    uuid = line.get("uuid")
    if line.get("type") not in _SPOKEN or line.get("isSidechain") is True:
        return None
    if not isinstance(message, Mapping) or not isinstance(uuid, str) or not uuid:
        return None
    if message.get("role") not in _SPOKEN or not message.get("content"):
        return None
    return Entry(
        message_id=uuid,
        data={"role": message["role"], "content": message["content"]},
        format="anthropic",
        written_at=moment(line.get("timestamp")),
    )
