"""Revisions: what changes when a transcript is rewritten with a smaller view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from ctxgc.core import Format
from ctxgc.wire import dump
from ctxgc.wire.transcripts.items import TranscriptEntry, TranscriptFacts, Usage
from ctxgc.wire.transcripts.lines import json_object
from ctxgc.wire.transcripts.window import RecordedWindow


class Addition(msgspec.Struct, frozen=True):
    """A new message and the id of the entry that it comes before; None: the end."""

    before: str | None
    data: dict[str, Any]


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries are removed, which are edited, and what is added between them.

    `reported` caps the recorded size of the newest request: agents decide by that record when to compact,
    and would summarize at once what was just pruned. `beside` is the part of it that is not messages,
    which can no longer be derived from the reports once messages are gone.
    """

    gone: frozenset[str] = frozenset()
    edited: Mapping[str, dict[str, Any]] = {}
    added: tuple[Addition, ...] = ()
    reported: int | None = None
    beside: int = 0

    def __bool__(self) -> bool:
        return bool(self.gone or self.edited or self.added)

    def before(self, message_id: str | None) -> Iterator[Addition]:
        """Yield what is added right before an entry."""
        return (addition for addition in self.added if addition.before == message_id)


class Writable(Protocol):
    """A transcript in memory that can be rewritten.

    `entries` is the window that its agent would continue with, oldest first: earlier windows, abandoned
    branches and subagents' messages are not in it, and are written as they are.
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
    def facts(self) -> TranscriptFacts:
        """What the file says about the session."""
        ...

    @property
    def window(self) -> RecordedWindow:
        """The window as it was read, with what cannot be rewritten."""
        ...

    @property
    def usages(self) -> list[Usage]:
        """What the provider reported for the answers of the window; empty if the format has no usage."""
        ...

    @property
    def session_id(self) -> str | None:
        """The agent's id of the session, if the format has one."""
        ...

    def write(self, revision: Revision, new_id: str | None = None) -> bytes:
        """Return the file with the revision in it, under another session id if one is given."""
        ...


class FileLine(NamedTuple):
    """One line of a file: its number from 1, its bytes with the newline, and its JSON object."""

    number: int
    raw: bytes
    data: dict[str, Any] | None

    def with_data(self, data: dict[str, Any]) -> bytes:
        """Return the line with other data; its line ending stays."""
        ending = b"\r\n" if self.raw.endswith(b"\r\n") else b"\n"
        return dump(data).encode() + (ending if self.raw.endswith(b"\n") else b"")


def split_lines(data: bytes) -> list[FileLine]:
    """Return the lines of a file; one that is not a JSON object has no data."""
    *whole, last = data.split(b"\n")
    raws = [*(piece + b"\n" for piece in whole), *([last] if last else ())]
    return [FileLine(number, raw, json_object(raw)) for number, raw in enumerate(raws, 1)]
