"""Checkpoints of a coding agent: copies of its transcript, before a compaction and by S4's triggers."""

from __future__ import annotations

import calendar
import os
import re
import time
from contextlib import suppress
from typing import Any

from ctxgc.agents.events import HookSettings, log_event
from ctxgc.agents.transcript import began_at, size_of

Json = dict[str, Any]

CHECKPOINTS = "checkpoints"
KEPT = 5
"""Checkpoints before compactions that are kept per session."""
KEPT_DUE = 2
"""Checkpoints by triggers that are kept per session."""

SIZE, TIME = "context_size_threshold", "time_interval"
PERCENT, SECONDS = 80.0, 1_800.0
"""When these two triggers ask for a checkpoint. A test compares them with the defaults of the guard."""

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]+")
_MOMENT = "%Y%m%dT%H%M%S"


def save(settings: HookSettings, said: Json, trigger: object) -> None:
    """Copy the transcript as it is now, unless the newest copy is the same."""
    from pathlib import Path  # noqa: PLC0415 (a hook that has nothing to save loads less)

    from ctxgc.files import remove, write_atomic  # noqa: PLC0415

    source = said.get("transcript_path")
    if not size_of(source):
        return
    folder = Path(_folder(settings, said))
    data = Path(str(source)).read_bytes()
    newest = max(folder.glob("*.jsonl"), default=None)
    if newest is not None and newest.read_bytes() == data:
        return  # the agent may announce one compaction several times
    seconds, rest = divmod(time.time_ns(), 10**9)
    moment = f"{time.strftime(_MOMENT, time.gmtime(seconds))}-{rest:09d}"
    name = f"{moment}-{_plain(trigger)}.jsonl"
    write_atomic(folder / name, data)
    alike = sorted(p for p in folder.glob("*.jsonl") if _is_due(p.name) == _is_due(name))
    for old in alike[: -(KEPT_DUE if _is_due(name) else KEPT)]:
        with suppress(OSError):
            remove(old)
    log_event(settings, "checkpoint", f"{name}: saved {len(data)} bytes in {folder.name}")


def save_if_due(settings: HookSettings, said: Json, percent: float | None) -> None:
    """Copy the transcript if the context is too full, or the last copy too old.

    A full context asks once, until it is compacted. `percent` is how full it is, if that is known.
    """
    names = _names(_folder(settings, said))
    if percent is not None and percent > PERCENT and not _has_size(names):
        save(settings, said, SIZE)
    elif _age(names, said.get("transcript_path")) > SECONDS:
        save(settings, said, TIME)


def _names(folder: str) -> list[str]:
    with suppress(OSError):
        return sorted(name for name in os.listdir(folder) if name.endswith(".jsonl"))  # noqa: PTH208
    return []


def _has_size(names: list[str]) -> bool:
    """Return whether a full context made a copy since the last compaction."""
    for name in reversed(names):
        if name.endswith(f"{SIZE}.jsonl"):
            return True
        if not _is_due(name):
            return False
    return False


def _age(names: list[str], transcript: object) -> float:
    """Return the seconds since the last copy, or since the session began; 0 if that is not known."""
    last = names[-1].partition("-")[0] if names else began_at(transcript)
    with suppress(ValueError, OverflowError):
        return time.time() - calendar.timegm(time.strptime(last, _MOMENT))
    return 0.0


def _is_due(name: str) -> bool:
    return name.endswith((f"-{SIZE}.jsonl", f"-{TIME}.jsonl"))


def _folder(settings: HookSettings, said: Json) -> str:
    return os.path.join(settings.folder, CHECKPOINTS, _plain(said.get("session_id")))  # noqa: PTH118


def _plain(name: object) -> str:
    """Return a name that is safe as a part of a path, whatever the agent sent."""
    return _NOT_PLAIN.sub("-", str(name or "unknown"))[:80]
