"""The sessions of coding agents on this machine: where they are, and how they are resumed."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import msgspec

from ctxgc.tokens import window_of
from ctxgc.wire.transcripts import TranscriptFacts, claude_code, codex, decode_line

# -- The context window of a model


DEFAULT_LIMIT = 200_000
_SIZES = (128_000, 200_000, 400_000, 1_000_000, 2_000_000)


def limit_for(model: str | None, reported: int | None = None, largest: int = 0) -> int:
    """Return the window of a model in tokens; never less than the largest request that it took.

    Args:
        model: its name; None if unknown.
        reported: what the transcript says.
        largest: the tokens of the largest request.
    """
    if reported is not None and reported >= largest:
        return reported
    known = window_of(model) or DEFAULT_LIMIT
    return next((size for size in (known, *_SIZES) if size >= max(known, largest)), largest)


HEAD_BYTES = 64 << 10

RESUME = {"claude_code": ("claude", "--resume"), "codex": ("codex", "resume")}
"""The kinds of transcripts that an agent resumes, with its command; the session's id follows."""
_READERS = {"claude-code": claude_code, "codex": codex}


class SessionFile(msgspec.Struct, frozen=True, kw_only=True):
    """A session file, before any of it was read."""

    agent: str
    path: Path
    session_id: str
    updated_at: datetime
    size: int


def claude_folder(env: Mapping[str, str] | None = None) -> Path:
    """Return where Claude Code keeps its sessions: CLAUDE_CONFIG_DIR, else `~/.claude`."""
    given = (os.environ if env is None else env).get("CLAUDE_CONFIG_DIR")
    return (Path(given) if given else Path.home() / ".claude") / "projects"


def codex_folder(env: Mapping[str, str] | None = None) -> Path:
    """Return where Codex keeps its sessions: CODEX_HOME, else `~/.codex`."""
    given = (os.environ if env is None else env).get("CODEX_HOME")
    return (Path(given) if given else Path.home() / ".codex") / "sessions"


def session_folders() -> list[Path]:
    """Return the folders that agents keep their sessions in."""
    return [claude_folder(), codex_folder()]


def new_session_path(agent: str, session_id: str, project: str, at: datetime) -> Path:
    """Return where an agent looks for the file of a session that worked in a folder.

    Args:
        agent: `claude-code` or `codex`.
        session_id: a UUID.
        project: the absolute path of the folder.
        at: when the session began.
    """
    if agent == "codex":
        local = at.astimezone()
        name = f"rollout-{local:%Y-%m-%dT%H-%M-%S}-{session_id}.jsonl"
        return codex_folder() / f"{local:%Y}" / f"{local:%m}" / f"{local:%d}" / name
    return claude_folder() / re.sub(r"[^A-Za-z0-9]", "-", project) / f"{session_id}.jsonl"


def resume_command(kind: str, file: Path, session_id: str, project: str | None) -> str | None:
    """Return the shell command that continues a session file with its agent, copied to its folder first.

    None for a file that no agent resumes, or of which the project is not known.
    """
    is_packed = file.suffix == ".gz"
    if kind not in RESUME or is_packed or (kind == "claude_code" and project is None):
        return None
    # Claude Code looks in the folder of the project, Codex in all of its folders; both go by the name.
    agent = kind.replace("_", "-")
    place = new_session_path(agent, session_id, project or "", datetime.now(UTC))
    folder = codex_folder() if agent == "codex" else place.parent
    steps = []
    if session_id not in file.name or not file.absolute().is_relative_to(folder.absolute()):
        steps = [] if place.parent.is_dir() else [["mkdir", "-p", str(place.parent)]]
        steps.append(["cp", str(file), str(place)])
    if project is not None and Path(project) != Path.cwd():
        steps.append(["cd", project])
    return " && ".join(map(shlex.join, [*steps, [*RESUME[kind], session_id]]))


def find_sessions(env: Mapping[str, str] | None = None) -> list[SessionFile]:
    """Return the session files of all known agents, newest first."""
    found = [
        *_files("claude-code", claude_folder(env), "*/*.jsonl"),
        *_files("codex", codex_folder(env), "**/rollout-*.jsonl"),
    ]
    return sorted(found, key=lambda each: (each.updated_at, str(each.path)), reverse=True)


def subagent_files(path: Path) -> list[Path]:
    """Return the files in which the subagents of a session of Claude Code wrote, by their names."""
    name = path.name.removesuffix(".gz").removesuffix(".jsonl")
    own = (path.parent / name / "subagents").glob("*.jsonl")
    # Older versions put them next to the session.
    near = (file for file in path.parent.glob("agent-*.jsonl") if _session_in(file) == name)
    return sorted([*own, *near])


def _session_in(file: Path) -> str | None:
    facts = TranscriptFacts()
    try:
        with file.open("rb") as opened:
            _read(opened, "claude-code", facts, HEAD_BYTES)
    except OSError:
        return None
    return facts.session_id


def project_of(found: SessionFile) -> str | None:
    """Return the folder that a session worked in."""
    facts = TranscriptFacts()
    try:
        with found.path.open("rb") as file:
            _read(file, found.agent, facts, HEAD_BYTES)
    except OSError:
        return None
    return facts.project


def _files(agent: str, folder: Path, pattern: str) -> Iterator[SessionFile]:
    for path in folder.glob(pattern):
        # The conversation of a subagent is in the same folder as its session.
        if path.name.startswith("agent-"):
            continue
        try:
            about = path.stat()
        except OSError:
            continue
        yield SessionFile(
            agent=agent,
            path=path,
            session_id=path.stem.split("-", 6)[-1] if agent == "codex" else path.stem,
            updated_at=datetime.fromtimestamp(about.st_mtime, UTC),
            size=about.st_size,
        )


def _read(file: IO[bytes], agent: str, facts: TranscriptFacts, size: int) -> None:
    for raw in file.read(size).split(b"\n"):
        line, _ = decode_line(raw) if raw else (None, "")
        if line is not None and _is_from(agent, line):
            for _item in _READERS[agent].items(line, 0, facts):
                pass


def _is_from(agent: str, line: dict[str, object]) -> bool:
    return codex.is_codex(line) if agent == "codex" else claude_code.is_claude_code(line)
