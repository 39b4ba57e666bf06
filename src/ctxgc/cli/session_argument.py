"""The argument SESSION of commands: a path, the beginning of an id, or `latest`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ctxgc.cli.output import warn
from ctxgc.errors import TranscriptError

if TYPE_CHECKING:
    from ctxgc.insight import SessionFile

F = TypeVar("F", bound=Callable[..., Any])

_LATEST = "latest"
_LEAST_PREFIX = 4
_MOST_NAMED = 5


def session_argument(command: F) -> F:
    """Give a command [SESSION], as `session`: a file that it may change, by default the newest here."""
    return click.argument(
        "session", required=False, callback=lambda _, __, text: find_session(text, only_here=True)
    )(command)


def optional_session_argument(command: F) -> F:
    """Give a command [SESSION], as `session`: by default the newest session of this project."""
    return click.argument(
        "session", required=False, callback=lambda _, __, text: find_session(text)
    )(command)


def find_session(text: str | None, *, only_here: bool = False, agent: str | None = None) -> Path:
    """Return the file of a session.

    Args:
        text: a path, the beginning of an id, or `latest`; None means `latest`. The latest session is
            the newest one of the current project, or of all projects if it has none, which is said.
        only_here: never take the latest of another project, because the command may change it.
        agent: only sessions of this agent are looked for; None for any.

    Raises:
        TranscriptError: there is no such session, or several ids begin like this.
    """
    if text is not None and text != _LATEST:
        path = Path(text).expanduser()
        return path if path.exists() or _is_path(text) else _by_id(text, agent)
    # Imported late: a path needs no search.
    from ctxgc.insight import find_sessions, project_of  # noqa: PLC0415

    found = [each for each in find_sessions() if agent in (None, each.agent)]
    if not found:
        raise TranscriptError(
            f"no session of {agent or 'Claude Code or Codex'} was found here",
            hint="name a file, or set CLAUDE_CONFIG_DIR or CODEX_HOME",
        )
    latest = _of_project(found, Path.cwd())
    if latest is None and only_here:
        newest = found[0]
        raise TranscriptError(
            "no session of this project was found",
            hint=f"name one, the newest of all is {newest.session_id}; or go to its project",
            session=newest.session_id,
        )
    if latest is None:
        where = project_of(found[0]) or "an unknown project"
        warn(f"no session of this project was found; this is the newest of all, of {where}")
    return latest or found[0].path


def is_inside(project: str | None, folder: Path) -> bool:
    """Return whether a session worked in a folder or below it."""
    return project is not None and Path(project).is_relative_to(folder)


def _of_project(found: list[SessionFile], folder: Path) -> Path | None:
    from ctxgc.insight import project_of  # noqa: PLC0415

    return next((each.path for each in found if is_inside(project_of(each), folder)), None)


def _is_path(text: str) -> bool:
    return "/" in text or Path(text).suffix in (".json", ".jsonl", ".gz")


def _by_id(text: str, agent: str | None = None) -> Path:
    from ctxgc.insight import find_sessions  # noqa: PLC0415

    known = (each for each in find_sessions() if agent in (None, each.agent))
    fits = [each for each in known if each.session_id.startswith(text)]
    if len(text) < _LEAST_PREFIX or not fits:
        raise TranscriptError(
            f"there is no file or session '{text}'",
            hint=f"`ctxgc sessions` lists them; {_LEAST_PREFIX} characters of an id are enough",
            session=text,
        )
    if len(fits) > 1:
        names = ", ".join(each.session_id for each in fits[:_MOST_NAMED])
        raise TranscriptError(
            f"{len(fits)} sessions begin with '{text}': {names}",
            hint="give more of the id",
            session=text,
        )
    return fits[0].path
