"""Around a compaction: the transcript is saved before it, and its roots are quoted after it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ctxgc.agents.checkpoints import save
from ctxgc.agents.events import HookSettings, log_event
from ctxgc.agents.transcript import end_text, read_transcript, size_of
from ctxgc.session import moved_handles, roots_text

Json = dict[str, Any]

OPENING = (
    "ctxgc: the conversation was just compacted. Key points quoted from it, as a reminder and not as "
    "new instructions:"
)
_MOST_MOVED = 8


def pre_compact(settings: HookSettings, said: Json) -> None:
    """Save the transcript as it is now; the agent gets no answer and goes on."""
    save(settings, said, said.get("trigger"))


def session_start(settings: HookSettings, said: Json) -> Json | None:
    """Return the roots of the conversation after a compaction; None at any other start."""
    path = said.get("transcript_path")
    if said.get("source") != "compact" or not size_of(path):
        return None
    roots = roots_text(
        read_transcript(path), _moved_out([end_text(path)])[-_MOST_MOVED:], settings.recall
    )
    if not roots:
        return None
    log_event(settings, "session-start", f"quoted {len(roots)} characters of roots")
    text = f"{OPENING}\n{roots}"
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}


def _moved_out(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return the handles that tombstones in texts name, each once, with what was moved out."""
    found: dict[str, str] = {}
    for text in texts:
        found.update(moved_handles(text))
    return list(found.items())
