"""Around a compaction: the transcript is kept before it, and the roots come back after it."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ctxgc.agents.log import note
from ctxgc.agents.roots import moved_out, roots_text
from ctxgc.agents.settings import HookSettings
from ctxgc.agents.transcript import end_text, read_transcript, size_of
from ctxgc.stores.files import remove, write_atomic

Json = dict[str, Any]

CHECKPOINTS = "checkpoints"
KEPT = 5
"""How many checkpoints of one session are kept."""

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]+")
OPENING = (
    "ctxgc: the conversation was just compacted. What follows is quoted from it, so that nothing of it "
    "is lost; it repeats what was said and adds no instruction."
)


def pre_compact(settings: HookSettings, said: Json) -> None:
    """Keep the transcript as it is now; the agent is told nothing and goes on."""
    source = said.get("transcript_path")
    if not size_of(source):
        return
    folder = Path(settings.folder) / CHECKPOINTS / _plain(said.get("session_id"))
    data = Path(str(source)).read_bytes()
    newest = max(folder.glob("*.jsonl"), default=None)
    if newest is not None and newest.read_bytes() == data:
        return  # the agent may announce one compaction several times
    seconds, rest = divmod(time.time_ns(), 10**9)
    moment = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(seconds))}-{rest:09d}"
    write_atomic(folder / f"{moment}-{_plain(said.get('trigger'))}.jsonl", data)
    for old in sorted(folder.glob("*.jsonl"))[:-KEPT]:
        with suppress(OSError):
            remove(old)
    note(settings, "pre-compact", f"kept {len(data)} bytes in {folder.name}")


def session_start(settings: HookSettings, said: Json) -> Json | None:
    """Return the roots of the conversation after a compaction; at any other start nothing is added."""
    path = said.get("transcript_path")
    if said.get("source") != "compact" or not size_of(path):
        return None
    roots = roots_text(read_transcript(path), moved_out([end_text(path)]), settings.recall)
    if not roots:
        return None
    note(settings, "session-start", f"brought back {len(roots)} characters of roots")
    text = f"{OPENING}\n{roots}"
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}


def _plain(name: object) -> str:
    """Return a name that is safe as a part of a path, whatever the agent sent."""
    return _NOT_PLAIN.sub("-", str(name or "unknown"))[:80]
