"""Stubs and digests: the texts that are in the view in place of what left."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ctxgc.collector.worth import CopiedLines, Passage
from ctxgc.core import (
    GAP,
    OPENING,
    SHORT_GAP,
    ContextSegment,
    Text,
    copy_mark,
    note,
    with_gaps,
)

# -- The digest: one note in place of the messages that left


_RANGE = r"s-\d+(?:\.\.\d+)?"
_MARK = re.compile(re.escape(OPENING) + rf" ({_RANGE}(?: {_RANGE})*)\](?: .*)?")
_LINE = re.compile(re.escape(OPENING) + rf" {_RANGE}(?: {_RANGE})*\](| .*)$", re.MULTILINE)
_FORM = re.compile(r"s-\d+")
LEAST_RANGE = 4
MOST_IN_RANGE = 100_000


class DigestEntry:
    """A group that left: the handle that brings it back, and what stays of it.

    `last` is the number of the last segment that left with it: that of the handle, unless it is given.
    """

    __slots__ = ("handle", "last", "number", "passage")

    def __init__(self, handle: str, text: Text | None = None, last: int | None = None) -> None:
        self.handle = handle
        self.number = _number(handle)
        self.last = self.number if last is None else last
        self.passage = Passage(Text("") if text is None else text)

    def keep_all(self) -> None:
        """Keep every line."""
        self.passage.kept = [n for n, piece in enumerate(self.passage.text.lines) if piece]


def is_handle(text: str) -> bool:
    """Tell whether a digest can name this."""
    return _FORM.fullmatch(text) is not None


def handle_of(segments: Iterable[ContextSegment]) -> str | None:
    """Return what brings a group back: the id that its first part came in with; None without one."""
    handles = (segment.derived_from or segment.segment_id for segment in segments)
    return next(filter(is_handle, handles), None)


def read_digest(text: str) -> list[DigestEntry]:
    """Return the entries of a digest; a text that is none has none."""
    entries: list[DigestEntry] = []
    for handles, lines in _sections(text):
        entries += [DigestEntry(handle) for handle in handles[:-1]]
        entries.append(DigestEntry(handles[-1], Text("\n".join(lines)) if lines else None))
    return entries


def handles_in(text: str) -> list[str]:
    """Return the handles that a digest names."""
    return [handle for handles, _ in _sections(text) for handle in handles]


def digest_of(text: str) -> str:
    """Return the digest in a notice, without what is said above it."""
    lines = text.split("\n")
    first = next((n for n, line in enumerate(lines) if _MARK.fullmatch(line)), len(lines))
    return "\n".join(lines[first:])


def write_digest(entries: Iterable[DigestEntry]) -> str:
    """Return the text of a digest."""
    lines: list[str] = []
    bare: list[DigestEntry] = []
    for entry in entries:
        kept, names = entry.passage.excerpt(), " ".join(entry.passage.names)
        if kept or names:
            lines += _written([*_ranges(bare), entry.handle], names, kept)
            bare = []
        else:
            bare.append(entry)
    return "\n".join([*lines, *(_written(_ranges(bare), "", "") if bare else ())])


def without(text: str, handles: Collection[str]) -> str:
    """Return a notice whose digest no longer tells of some groups; empty when it tells of none."""
    entries = [entry for entry in read_digest(text) if entry.handle not in handles]
    for entry in entries:
        entry.keep_all()
    notice = text[: len(text) - len(digest_of(text))]
    return f"{notice}{write_digest(entries)}" if entries else ""


def without_handles(text: str) -> str:
    """Return a notice whose digest still has its lines, and no handles: for those who cannot recall."""
    return _LINE.sub(rf"{OPENING} moved out earlier]\1", text)


def _ranges(entries: list[DigestEntry]) -> list[str]:
    """Return the handles of entries; a range where they follow each other without a gap."""
    runs: list[list[DigestEntry]] = []
    for entry in entries:
        if runs and entry.number == runs[-1][-1].last + 1:
            runs[-1].append(entry)
        else:
            runs.append([entry])
    return [handle for run in runs for handle in _named(run)]


def _named(run: list[DigestEntry]) -> list[str]:
    if len(run) < LEAST_RANGE:
        return [entry.handle for entry in run]
    return [f"{run[0].handle}..{run[-1].last}"]


def _handles(named: str) -> Iterator[str]:
    """Yield the handles that a line of a digest names, those within its ranges too."""
    for each in named.split():
        first, _, last = each.partition("..")
        yield first
        start = _number(first)
        # A text that only looks like a digest may name a range of any size.
        end = min(int(last), start + MOST_IN_RANGE) if last else start
        yield from (f"s-{number}" for number in range(start + 1, end + 1))


def _number(handle: str) -> int:
    return int(handle.removeprefix("s-"))


def _written(handles: list[str], names: str, kept: str) -> Iterator[str]:
    yield note(" ".join(handles)) + (f" {names}" if names else "")
    if kept:
        yield kept


def _sections(text: str) -> Iterator[tuple[list[str], list[str]]]:
    handles: list[str] = []
    lines: list[str] = []
    for line in text.split("\n"):
        mark = _MARK.fullmatch(line)
        if mark is not None:
            if handles:
                yield handles, lines
            handles, lines = list(_handles(mark[1])), []
        elif line != GAP:
            lines.append(line)
    if handles:
        yield handles, lines


# -- Stubs: the lines of a tool result that stay under its tombstone


HEAD_CHARS = 60


def kept_lines(text: Text, kept: Iterable[int]) -> str:
    """Return the lines of a result that stay, with a mark for each gap that the lines do not show."""
    last = len(text.lines)

    def mark(_: int, line: int) -> str:
        # The own number of a line shows the gap before it, and the head the one after the last.
        return "" if line == last or text.is_numbered(line) else SHORT_GAP

    return with_gaps(text.lines, kept, mark)


def without_copies(
    text: Text, runs: Sequence[CopiedLines], names: Mapping[str, str], recall: str
) -> str:
    """Return a result in which runs of lines that were shown before are replaced by a mark.

    Args:
        text: the result.
        runs: what need not be sent.
        names: what to call each source.
        recall: the call that recalls the result as it was; the first mark carries it, since the source may
            leave the view before the mark does.
    """
    call = f"; {recall}"
    passages: list[str] = []
    last = 0
    for run in runs:
        passages.append(text.passage(last, run.first))
        lines = f"{run.last - run.first} lines of the earlier {names[run.source]}"
        passages.append(f"{copy_mark(lines + call)}\n")
        last, call = run.last, ""
    passages.append(text.passage(last, len(text.lines)))
    return "".join(passages).removesuffix("\n")
