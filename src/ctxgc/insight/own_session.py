"""The session of the agent that started this process, by what its hooks noted, and how full it is."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.errors import CtxgcError
from ctxgc.insight.fill import WindowFill
from ctxgc.insight.live import SessionFollower
from ctxgc.places import agent_process, running_folder

_PROCESSES = Path("/proc/self")


class SessionNote(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook noted about a session."""

    transcript: str
    agent: str = ""
    session_id: str | None = None
    folder: str | None = None
    context_limit: int | None = None


class OwnSession:
    """Follows the session of the agent that started this process; what it is may change meanwhile.

    The note is that of the agent's process. Where the system does not tell which process that is, it is the
    newest one about the folder that this process works in.

    Args:
        store: the address of the store that the agent's hooks use.
    """

    def __init__(self, store: str) -> None:
        self._folder = Path(running_folder(store))
        self._name = f"{agent_process()}.json"
        self._follower: SessionFollower | None = None
        self._note: SessionNote | None = None
        self._fill: WindowFill | None = None

    def fill(self) -> WindowFill | None:
        """Return how full the agent's window is; None if its session is not known, or cannot be read."""
        note = self._noted()
        if note is None:
            return None
        if self._follower is None or note != self._note:
            self._note = note
            self._follower = SessionFollower(Path(note.transcript), note.context_limit)
            self._fill = None
        try:
            if self._follower.look() or self._fill is None:
                self._fill = self._follower.fill()
        except (CtxgcError, OSError):
            return None
        return self._fill

    def _noted(self) -> SessionNote | None:
        found = _read(self._folder / self._name)
        if found is not None or _PROCESSES.exists():
            return found
        here = str(Path.cwd())
        notes = sorted(self._folder.glob("*.json"), key=_changed, reverse=True)
        return next((n for n in map(_read, notes) if n is not None and n.folder == here), None)


def _read(path: Path) -> SessionNote | None:
    with suppress(OSError, ValueError, msgspec.ValidationError):
        said: Any = json.loads(path.read_bytes())
        return msgspec.convert(said, SessionNote)
    return None


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
