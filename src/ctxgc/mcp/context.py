"""Context: the segments that an agent keeps here, and the state around them.

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

from ctxgc.collector import GCEngine, root_knobs
from ctxgc.config import GCConfig
from ctxgc.core import (
    Amount,
    EngineOptions,
    GCState,
    Heap,
    RecallMemory,
)
from ctxgc.errors import InputError
from ctxgc.guard import Zone
from ctxgc.session import Stash
from ctxgc.stores import Write

PruneStrategy = Literal["stash", "delete", "auto"]
DefaultStrategy = Literal["stash", "auto"]

DEFAULT_CONTEXT_LIMIT = 200_000
FORMAT_VERSION = 1


class Saved(msgspec.Struct, kw_only=True):
    """All that a context is beside its segments; one document of the store.

    `settings` are the keys that the agent configured, `latest` the newest arrivals, `imports` how far
    each transcript was read, `ghosts` and `thrashing` what came of recalls.
    """

    format: int = FORMAT_VERSION
    secret: str = ""
    version: int = 0
    step: int = 0
    updates: int = 0
    opened: list[str] = []
    files: list[str] = []
    first_request: str | None = None
    deleted: Amount = Amount()
    context_limit: int = DEFAULT_CONTEXT_LIMIT
    limit_by_agent: bool = False
    settings: dict[str, Any] = {}
    strategy: DefaultStrategy = "stash"
    task_id: str | None = None
    depends_on: list[str] = []
    active_file: str | None = None
    active_range: tuple[int, int] | None = None
    open_files: list[str] = []
    breakpoints: list[tuple[str, int]] = []
    latest: list[str] = []
    zone: str = Zone.SAFE.value
    collections: int = 0
    imports: dict[str, dict[str, Any]] = {}
    ghosts: dict[str, list[float]] = {}
    thrashing: dict[str, Any] = {}


class Context:
    """One context in memory: heap, what is said beside it, and the writes that are due.

    Args:
        heap: its segments.
        saved: the rest.
        base: the configuration that the server was started with.
        clock: gives the present time.
        has_messages: whether a session keeps the messages of its segments.
    """

    def __init__(
        self,
        heap: Heap,
        saved: Saved,
        base: GCConfig,
        clock: Callable[[], datetime],
        *,
        has_messages: bool = False,
    ) -> None:
        self.has_messages = has_messages
        self.heap = heap
        self.saved = saved
        self.base = base
        self.clock = clock
        self.stash = Stash(heap, bytes.fromhex(saved.secret))
        self.erasures: list[str] = []
        """What the session deletes for good after the next commit."""
        self.writes: list[Write] = []
        """What the next commit writes beside the segments and the saved state."""
        self.config = base.replace(**saved.settings)
        """The configuration in force: what the server was started with, and the agent's own keys."""

    def replace_heap(self, heap: Heap) -> None:
        """Go on with another heap and with the configuration that is saved beside it."""
        self.heap = heap
        self.stash = Stash(heap, bytes.fromhex(self.saved.secret))
        self.stash.learn([segment.segment_id for segment in heap])
        self.config = self.base.replace(**self.saved.settings)

    @property
    def tokens(self) -> int:
        """How many tokens stand in the working tier."""
        return self.heap.ledger.working.tokens

    @property
    def engine(self) -> GCEngine:
        """The engine with the options in force."""
        return GCEngine(engine_options(self.config, self.saved.context_limit))

    def state(self) -> GCState:
        """Return what the engine has to know beside the heap."""
        saved, config, recalls = self.saved, self.config, RecallMemory()
        recalls.restate(saved.ghosts)
        return GCState(
            heap=self.heap,
            now=self.clock(),
            current_task_id=saved.task_id,
            task_dependencies=frozenset(saved.depends_on),
            active_file=saved.active_file,
            active_range=saved.active_range,
            held=self.held(),
            knobs=root_knobs(config, saved.context_limit),
            recalls=recalls,
            request=self.heap.updates,
        )

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
        return self.saved.latest[-count:] if count else []

    def _at(self, path: str, line: int | None) -> list[str]:
        """The current segments of a file, or of the place of a line in it."""
        segments = map(self.heap.get, self.heap.keys.holders_of_path(path))
        return [
            segment.segment_id
            for segment in segments
            if segment.superseded_by is None and _covers(segment.line_range, line)
        ]


def engine_options(config: GCConfig, context_limit: int) -> EngineOptions:
    """Return the options of an engine that follows a configuration."""
    return EngineOptions(
        profile=config.score_profile,
        weights=dict(config.score_weights),
        knobs=root_knobs(config, context_limit),
        context_limit=context_limit,
        soft_limit_percent=config.soft_limit_percent,
        hard_limit_percent=config.hard_limit_percent,
        target_percent=config.target_percent,
        batch=config.batch,
        promote_after=config.promote_after,
        evacuate_min_tokens=config.evacuate_min_tokens,
    )


def saved_from_doc(doc: Mapping[str, Any]) -> Saved:
    """Return the state that a document of the store holds."""
    return msgspec.convert(dict(doc), Saved)


def _covers(lines: tuple[int, int] | None, line: int | None) -> bool:
    return lines is None or line is None or lines[0] <= line <= lines[1]


# -- The state of the IDE: what the editor or host works on


MOST_FILES = 100


def set_working_state(context: Context, said: Mapping[str, Any]) -> None:
    """Note what is said; what is not mentioned stays, and an empty text clears it.

    Raises:
        InputError: a line range without a file, or too many files; nothing changed.
    """
    saved = context.saved
    active = said.get("active_file", saved.active_file) or None
    lines = said.get("line_range")
    if lines is not None and active is None:
        raise InputError(
            "a line_range needs an active_file", hint="name the file", field="line_range"
        )
    files = _files(said.get("open_files"))
    if "task_id" in said:
        saved.task_id = said["task_id"] or None
    if "depends_on" in said:
        saved.depends_on = list(said["depends_on"])
    if "active_file" in said or lines is not None:
        saved.active_file, saved.active_range = active, lines
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
