"""A recorded session as it was before a compaction, as a new session that its agent can go on with."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import msgspec

from ctxgc.errors import InputError
from ctxgc.insight.local_sessions import RESUME, new_session_path, resume_command
from ctxgc.insight.measurement import TranscriptPass
from ctxgc.tokens import counter_for
from ctxgc.wire.transcripts import (
    Revision,
    open_transcript,
    read_whole,
    writable,
)


class EarlierSession(msgspec.Struct, frozen=True, kw_only=True):
    """The file of a new session, where its agent looks for it, and the command that continues it."""

    data: bytes
    place: Path
    session_id: str
    command: str | None


def before_compaction(path: Path, request: int, now: datetime | None = None) -> EarlierSession:
    """Return a recorded session as it was before the compaction that a request came after.

    That is the last compaction before the request; if there is none, the next one. Nothing is written.

    Raises:
        InputError: the session was not compacted, or its agent does not resume files.
    """
    transcript = open_transcript(path)
    if transcript.kind not in RESUME or path.suffix == ".gz":
        raise InputError(
            f"{path.name} is not a session that an agent resumes", hint="choose another", field="id"
        )
    ends: list[tuple[int, int]] = []

    def note(passed: TranscriptPass) -> None:
        ends.append((len(passed.requests), passed.window.items[-1].line))

    passed = TranscriptPass(transcript, counter_for(None), note)
    passed.run()
    if not ends:
        raise InputError(
            "the session was not compacted", hint="nothing left its window", field="id"
        )
    earlier = [line for requests, line in ends if requests < request]
    last = earlier[-1] if earlier else ends[0][1]
    return _cut(path, last, now or datetime.now(UTC))


def _cut(path: Path, last_line: int, now: datetime) -> EarlierSession:
    data = b"".join(read_whole(path).splitlines(keepends=True)[:last_line])
    file, session_id = writable(data, name=path.name), str(uuid4())
    project = file.facts.project or str(path.parent)
    place = new_session_path(file.kind.replace("_", "-"), session_id, project, now)
    return EarlierSession(
        data=file.write(Revision(), session_id),
        place=place,
        session_id=session_id,
        command=resume_command(file.kind, place, session_id, file.facts.project),
    )
