"""Which session an agent's process runs: noted by its hooks, so that its MCP server knows its own window."""

from __future__ import annotations

import json
import os
from typing import Any

from ctxgc.agents.events import HookSettings
from ctxgc.places import agent_process, running_folder

Json = dict[str, Any]


def note_session(settings: HookSettings, said: Json) -> None:
    """Note the session that an event speaks of, if that is not what was noted last.

    Raises:
        StoreError: the note cannot be written.
    """
    path = said.get("transcript_path")
    if not isinstance(path, str) or not path:
        return
    folder, pid = running_folder(settings.store_url), agent_process()
    name = os.path.join(folder, f"{pid}.json")  # noqa: PTH118 (the status line loads no pathlib)
    before = _read(name)
    note = {
        "agent": settings.agent,
        "session_id": said.get("session_id"),
        "transcript": path,
        "folder": said.get("cwd"),
        "context_limit": _limit(said) or _kept_limit(before, path),
    }
    if note == before:
        return
    _forget_ended(folder)
    from pathlib import Path  # noqa: PLC0415

    from ctxgc.files import write_atomic  # noqa: PLC0415

    write_atomic(Path(name), json.dumps(note).encode())


def _limit(said: Json) -> int | None:
    """Return the size of the window, which only the status line is told."""
    window = said.get("context_window")
    size = window.get("context_window_size") if isinstance(window, dict) else None
    return size if isinstance(size, int) and size > 0 else None


def _kept_limit(before: Json, path: str) -> Any:
    return before.get("context_limit") if before.get("transcript") == path else None


def _read(name: str) -> Json:
    try:
        with open(name, "rb") as file:  # noqa: PTH123
            found = json.loads(file.read())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _forget_ended(folder: str) -> None:
    """Remove the notes of processes that are no more."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return
    for name in names:
        pid = name.partition(".")[0]
        if pid.isdecimal() and not _is_running(int(pid)):
            try:
                os.unlink(os.path.join(folder, name))  # noqa: PTH108, PTH118
            except OSError:
                continue


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
