"""Revisions: what changes in a transcript when it is written again with a smaller view."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from ctxgc.core import Format
from ctxgc.wire import dump
from ctxgc.wire.transcripts.entry import Facts, TranscriptEntry, Usage


class Addition(msgspec.Struct, frozen=True):
    """A message that was not there before, and the entry that it stands in front of; None: the end."""

    before: str | None
    data: dict[str, Any]


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries leave, which say something else, and what comes in between them.

    `reported` is what the newest request shall have taken at most: agents decide by its record when to
    compact, and would summarize at once what was pruned so that they need not. `beside` is what of it
    is no message, which can be told no more from the reports once messages have left.
    """

    gone: frozenset[str] = frozenset()
    edited: Mapping[str, dict[str, Any]] = {}
    added: tuple[Addition, ...] = ()
    reported: int | None = None
    beside: int = 0

    def __bool__(self) -> bool:
        return bool(self.gone or self.edited or self.added)

    def before(self, message_id: str | None) -> Iterator[Addition]:
        """Yield what comes in right in front of an entry."""
        return (addition for addition in self.added if addition.before == message_id)


class Writable(Protocol):
    """A transcript in memory that can be written again.

    `entries` is the window that its agent would go on with, oldest first: what a compaction ended, a
    branch that was left and a subagent's talk are not in it, and are written as they are.
    """

    @property
    def kind(self) -> str:
        """The name of the file format."""
        ...

    @property
    def format(self) -> Format:
        """The wire format of the messages."""
        ...

    @property
    def entries(self) -> list[TranscriptEntry]:
        """The messages of the window."""
        ...

    @property
    def facts(self) -> Facts:
        """What the file says about the session."""
        ...

    @property
    def usages(self) -> list[Usage]:
        """What the provider reported for the answers of the window; empty where the format has none."""
        ...

    @property
    def session_id(self) -> str | None:
        """The agent's id of the session, where the format has one."""
        ...

    def write(self, revision: Revision, new_id: str | None = None) -> bytes:
        """Return the file with the revision in it, under another session id if one is given."""
        ...


class FileLine(NamedTuple):
    """One line of a file: its number from 1, its bytes with the newline, and what it says."""

    number: int
    raw: bytes
    data: dict[str, Any] | None

    def with_data(self, data: dict[str, Any]) -> bytes:
        """Return the line with other data; its line ending stays."""
        ending = b"\r\n" if self.raw.endswith(b"\r\n") else b"\n"
        return dump(data).encode() + (ending if self.raw.endswith(b"\n") else b"")


def split_lines(data: bytes) -> list[FileLine]:
    """Return the lines of a file; one that is no JSON object has no data."""
    *whole, last = data.split(b"\n")
    raws = [*(piece + b"\n" for piece in whole), *([last] if last else ())]
    return [FileLine(number, raw, _object(raw)) for number, raw in enumerate(raws, 1)]


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
