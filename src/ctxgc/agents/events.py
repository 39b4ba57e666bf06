"""The events that hooks answer, each with the one function that answers it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

from ctxgc.agents.settings import HookSettings
from ctxgc.errors import InputError

Json = dict[str, Any]
Answer = Callable[[HookSettings, Json], Json | str | None]

EVENTS = {
    "post-tool-use": "ctxgc.agents.birth:post_tool_use",
    "pre-compact": "ctxgc.agents.compaction:pre_compact",
    "session-start": "ctxgc.agents.compaction:session_start",
    "status-line": "ctxgc.agents.status_line:status_line",
}


def answer(event: str, settings: HookSettings, raw: bytes) -> bytes:
    """Return what the agent is told: JSON, a line of text, or nothing.

    Raises:
        InputError: there is no such event, or the agent did not send an object.
    """
    if event not in EVENTS:
        raise InputError(f"there is no event {event[:40]!r}", hint=", ".join(EVENTS), field="event")
    said = json.loads(raw)
    if not isinstance(said, dict):
        raise InputError(f"{event} came with {type(said).__name__}", hint="send an object")
    module, _, name = EVENTS[event].partition(":")
    function: Answer = getattr(importlib.import_module(module), name)
    found = function(settings, said)
    if isinstance(found, str):
        return f"{found}\n".encode("utf-8", "replace")
    return json.dumps(found).encode() if found is not None else b""
