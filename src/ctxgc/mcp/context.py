"""Context: the session that an agent keeps here, and what only this server knows about it.

Also the state of the IDE, whose segments are roots, and the directories that files may be read from.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from ctxgc.config import GCConfig
from ctxgc.errors import InputError, StoreDamagedError
from ctxgc.insight import OwnSession, WindowFill
from ctxgc.session import SegmentWork, Session, Zone, load_gc_plugin

DefaultStrategy = Literal["stash", "auto"]

DEFAULT_CONTEXT_LIMIT = 200_000
FORMAT_VERSION = 2
WHO = "mcp"
"""The name of this door in the history of collections."""


class Saved(msgspec.Struct, kw_only=True):
    """What only the server knows about a session; one document of the store.

    `is_own`: the server began the session. `settings` are the keys that the agent configured, `latest` the
    newest arrivals, `imports` how far each transcript was read, `deleted` how much is gone for good.
    """

    format: int = FORMAT_VERSION
    is_own: bool = False
    settings: dict[str, Any] = {}
    strategy: DefaultStrategy = "stash"
    open_files: list[str] = []
    breakpoints: list[tuple[str, int]] = []
    latest: list[str] = []
    imports: dict[str, dict[str, Any]] = {}
    deleted: dict[str, int] = {}


class AgentWindow:
    """The window of the agent that started the server, by its transcript.

    Args:
        own: the agent's session; None if nothing can be known about it.
        has_agent: whether a coding agent started the server, so that what it was given is not the window.
    """

    def __init__(self, own: OwnSession | None = None, *, has_agent: bool = False) -> None:
        self._own = own
        self.has_agent = has_agent

    def fill(self) -> WindowFill | None:
        """Return how full it is; None if that is not known."""
        return None if self._own is None else self._own.fill()


class Context:
    """A session in memory, with what the server knows besides.

    Args:
        session: everything that it keeps.
        saved: what only the server knows.
        base: the configuration that the server was started with.
        clock: gives the present time.
        window: that of the agent.
    """

    def __init__(
        self,
        session: Session,
        saved: Saved,
        base: GCConfig,
        clock: Callable[[], datetime],
        window: AgentWindow,
    ) -> None:
        self.session = session
        self.saved = saved
        self.base = base
        self.clock = clock
        self.window = window
        self.parts = session.inspect()
        self.heap = self.parts.heap
        self.stash = self.parts.stash

    @property
    def config(self) -> GCConfig:
        """The configuration in force: what the server was started with, and the agent's own keys."""
        return self.base.replace(**self.saved.settings)

    def configure(self, settings: dict[str, Any]) -> None:
        """Use other keys of the agent from now on."""
        self.saved.settings = settings
        self.session.set_gc_plugin(load_gc_plugin("gc_none"), self.config)

    @property
    def limit(self) -> int:
        """The size of the window in tokens."""
        return self.session.context_limit

    @property
    def tokens(self) -> int:
        """How many tokens the session has in use."""
        return self.session.budget.total_tokens()

    @property
    def zone(self) -> Zone:
        """The zone that was noted last."""
        return self.parts.state.zone

    @property
    def collections(self) -> int:
        """How many collections there were, in every door."""
        return len(self.parts.log.results)

    def work(self) -> SegmentWork:
        """Return what plans and moves segments, with what is held now."""
        return SegmentWork(self.session, WHO, self.held())

    def held(self) -> dict[str, str]:
        """Return what is kept because the host works on it, or because it only just came in."""
        found = dict.fromkeys(self._newest(), "recently ingested")
        for path, line in self.saved.breakpoints:
            found.update(dict.fromkeys(self._at(path, line), "breakpoint"))
        for path in self.saved.open_files:
            found.update(dict.fromkeys(self._at(path, None), "open file"))
        return found

    def handle(self, segment_id: str) -> str:
        """Return what recalls a segment."""
        return self.stash.handle(segment_id)

    def _newest(self) -> list[str]:
        count = self.config.recent_messages
        return [i for i in self.saved.latest[-count:] if i in self.heap] if count else []

    def _at(self, path: str, line: int | None) -> list[str]:
        """The current segments of a file, or of the place of a line in it."""
        segments = map(self.heap.get, self.heap.keys.holders_of_path(path))
        return [
            segment.segment_id
            for segment in segments
            if segment.superseded_by is None and _covers(segment.line_range, line)
        ]


def saved_from_doc(doc: Mapping[str, Any]) -> Saved:
    """Return what a document of the store holds.

    Raises:
        StoreDamagedError: it is none that a server wrote.
    """
    try:
        return msgspec.convert(dict(doc), Saved)
    except msgspec.ValidationError as error:
        raise StoreDamagedError(
            f"what the server knows about the session is damaged: {error}",
            hint="ctxgc doctor checks the store; --session names another session",
        ) from None


def _covers(lines: tuple[int, int] | None, line: int | None) -> bool:
    return lines is None or line is None or lines[0] <= line <= lines[1]


# -- The state of the IDE: what the editor or host works on


MOST_FILES = 100


def set_working_state(context: Context, said: Mapping[str, Any]) -> None:
    """Note what is said; what is not mentioned stays, and an empty text clears it.

    Raises:
        InputError: a line range without a file, or too many files; nothing changed.
    """
    saved, session, state = context.saved, context.session, context.parts.state
    active = said.get("active_file", state.active_file) or None
    lines = said.get("line_range")
    if lines is not None and active is None:
        raise InputError(
            "a line_range needs an active_file", hint="name the file", field="line_range"
        )
    files = _files(said.get("open_files"))
    if "task_id" in said or "depends_on" in said:
        task = (said["task_id"] or None) if "task_id" in said else state.task_id
        session.set_task(task, said.get("depends_on", state.task_dependencies))
    if "active_file" in said or lines is not None:
        session.set_active_file(active, lines)
    if files is not None:
        saved.open_files = [path for path, line in files if line is None]
        saved.breakpoints = [(path, line) for path, line in files if line is not None]
    for path in (active, *saved.open_files):
        if path is not None:
            context.heap.open_file(path)


def _files(named: Sequence[str] | None) -> list[tuple[str, int | None]] | None:
    """Read `path` and `path:line`; the latter is a breakpoint."""
    if named is None:
        return None
    if len(named) > MOST_FILES:
        raise InputError(
            f"{len(named)} open files are too many",
            hint=f"at most {MOST_FILES}",
            field="open_files",
        )
    found: list[tuple[str, int | None]] = []
    for name in named:
        path, colon, line = name.rpartition(":")
        is_line = colon and path and line.isascii() and line.isdigit() and len(line) < 10
        found.append((path, int(line)) if is_line else (name, None))
    return found


# -- Allowed roots


class AllowedRoots:
    """Decides which files may be read: those below one of these directories, symbolic links resolved."""

    def __init__(self, roots: Iterable[str | Path]) -> None:
        self.roots = tuple(Path(root).expanduser().resolve() for root in roots)

    def holds(self, path: Path) -> bool:
        """Return whether a path is a plain file below one of the roots."""
        try:
            self.checked(str(path))
        except InputError:
            return False
        return True

    def checked(self, path: str) -> Path:
        """Return the real path of a plain file below one of the roots.

        Raises:
            InputError: it is elsewhere, missing, or no plain file.
        """
        try:
            real = Path(path).expanduser().resolve(strict=True)
            plain = stat.S_ISREG(real.stat().st_mode)
        except (OSError, ValueError, RuntimeError):
            raise self._refused(path, "cannot be read") from None
        if not any(real.is_relative_to(root) for root in self.roots):
            raise self._refused(path, "is outside the allowed roots")
        if not plain:
            raise self._refused(path, "is no plain file")
        return real

    def _refused(self, path: str, why: str) -> InputError:
        allowed = ", ".join(str(root) for root in self.roots)
        return InputError(
            f"{path[:200]!r} {why}",
            hint=f"files below {allowed} can be read; the server's --root adds others",
            field="path",
        )


def read_from(path: Path, offset: int, most: int) -> tuple[bytes, int]:
    """Return bytes of a plain file from an offset, at most so many, and the size of the file.

    The last name of the path is not followed if it has become a symbolic link since it was checked.

    Raises:
        InputError: the file cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        file = os.open(path, flags)
        try:
            return os.pread(file, most, offset), os.fstat(file).st_size
        finally:
            os.close(file)
    except OSError as error:
        raise InputError(
            f"cannot read {path.name}: {error.strerror}", hint="check the path", field="path"
        ) from None
