"""A session of one coding agent for another: what is carried over, and where that agent looks for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from ctxgc.insight.local_sessions import new_session_path
from ctxgc.wire.transcripts import AgentKind, convert_transcript, open_transcript

CONVERTIBLE: dict[str, AgentKind] = {"claude-code": "claude_code", "codex": "codex"}
"""The agents whose sessions can be converted, with the kind of their files."""


class SessionConversion(msgspec.Struct, frozen=True, kw_only=True):
    """A session as another agent writes it, not written yet.

    `place` is where the agent looks for it, `project` the folder in which it must be started; `left`
    counts what stayed behind, `fixes` says what had to be repaired.
    """

    data: bytes
    place: Path
    project: str
    messages: int
    calls: int
    left: dict[str, int]
    fixes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data, without the text."""
        found = {name: getattr(self, name) for name in self.__struct_fields__ if name != "data"}
        return {**found, "place": str(self.place), "bytes": len(self.data)}


def convert_session(
    path: Path,
    agent: str,
    *,
    session_id: str,
    here: Path,
    at: datetime,
    retell: Callable[[str], str] = str,
) -> SessionConversion:
    """Return a session as a new one of another agent; nothing is written.

    Args:
        path: the file of the session.
        agent: who shall continue it: `claude-code` or `codex`.
        session_id: the id of the new session, a UUID.
        here: the folder of the new session, if that of the old one does not exist here.
        at: the time now.
        retell: gives what the new agent is shown of a text, such as a tombstone with a call that it can make.

    Raises:
        TranscriptError: it cannot be read, is of that agent already, or holds nothing to continue.
    """
    transcript = open_transcript(path)
    for _ in transcript.items():
        pass  # only a whole reading shows the facts
    named = transcript.facts.project
    project = named if named is not None and Path(named).is_dir() else str(here)
    made = convert_transcript(
        transcript, CONVERTIBLE[agent], session_id=session_id, project=project, at=at, retell=retell
    )
    return SessionConversion(
        data=made.data,
        place=new_session_path(agent, session_id, project, at),
        project=project,
        messages=made.messages,
        calls=made.calls,
        left=made.left,
        fixes=made.fixes,
    )
