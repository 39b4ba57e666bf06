"""What a session held before: what each compaction removed, and where a phrase came from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec

from ctxgc.core import Part, identifiers, mask_secrets, tokens
from ctxgc.errors import InputError
from ctxgc.insight.fill import WindowCount
from ctxgc.insight.history_diff import HistoryPart, compared_history
from ctxgc.insight.local_sessions import subagent_files
from ctxgc.tokens import CountingCache, counter_for
from ctxgc.wire import ToolUse, strings_of, understand
from ctxgc.wire.transcripts import (
    Compaction,
    RecordedWindow,
    Transcript,
    TranscriptEntry,
    open_transcript,
    starts_turn,
)

# -- Who said what


_KINDS = {"tool_call": "call", "tool_result": "result", "thinking": "thinking"}
_LONGEST_ARGUMENTS = 200_000


class _SpokenPart(NamedTuple):
    """A part of a message: who said it, and for calls and results what they are about."""

    entry: TranscriptEntry
    part: Part
    who: str
    about: str
    path: str | None

    @property
    def text(self) -> str:
        """The text as its reader means it."""
        return strings_of(self.part.text) if self.who == "call" else self.part.text


class _Speakers:
    """Names the parts of entries, taken in order: a result is about what its call was about."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, str | None]] = {}

    def parts(self, entry: TranscriptEntry) -> Iterator[_SpokenPart]:
        """Yield the parts of an entry."""
        message = entry.message()
        for part in message.parts if message is not None else ():
            about, path = self._about(part)
            yield _SpokenPart(entry, part, _who(entry, part), about, path)

    def _about(self, part: Part) -> tuple[str, str | None]:
        if part.kind == "tool_call":
            name = part.name or "unknown tool"
            use = understand(name, part.text if len(part.text) <= _LONGEST_ARGUMENTS else "")
            self._calls[part.call_id or ""] = (_call_text(name, use), use.path)
        if part.kind in ("tool_call", "tool_result"):
            return self._calls.get(part.call_id or "", ("unknown tool", None))
        return "", None


def _call_text(name: str, use: ToolUse) -> str:
    said = use.path or use.command or ""
    return said if said.startswith(name) else f"{name} {said}".rstrip()


def _who(entry: TranscriptEntry, part: Part) -> str:
    if entry.is_summary:
        return "summary"
    if part.kind in _KINDS:
        return _KINDS[part.kind]
    role = entry.data.get("role")
    if role == "user" and entry.is_side:
        return "call"  # what a subagent is asked is said by the model that calls it
    if role == "user":
        return "harness" if entry.is_aside else "user"
    return "model" if role == "assistant" else "system"


# -- What compactions removed


class RemovedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a message that a compaction removed."""

    line: int
    who: str
    about: str
    tokens: int
    text: str


class RemovedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file whose content was removed, and how often it was used again before the next compaction."""

    path: str
    tokens: int
    used_again: int


class SessionCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction removed, in the tokens of the provider.

    `tokens_before` is the whole window that it ended; `tokens_removed` is what of its messages did not come
    over word for word, and `tokens_brought` what the next window began with instead: summary, kept messages
    and files that the agent attached again. `asked` are the requests of the user that were removed.
    """

    number: int
    line: int
    trigger: str
    tokens_before: int
    tokens_removed: int
    tokens_brought: int
    by_who: dict[str, int]
    removed: list[RemovedPart]
    asked: list[RemovedPart]
    files: list[RemovedFile]
    at: datetime | None = None


def session_compactions(transcript: Transcript) -> list[SessionCompaction]:
    """Return what each compaction of a session removed, the first one first.

    Raises:
        TranscriptError: the file cannot be read.
    """
    windows, causes = _windows(transcript)
    chained, counter = transcript.kind == "claude_code", CountingCache(counter_for(None))
    entries = [window.entries(chained=chained) for window in windows]
    found, count = list[SessionCompaction](), None
    for number, cause in enumerate(causes, 1):
        before, after = entries[number - 1 : number + 1]
        usages = windows[number - 1].usages
        count = WindowCount(before, usages, transcript.facts, counter, count)
        found.append(_Removal(cause, before, after, count).record(number))
    return found


def _windows(transcript: Transcript) -> tuple[list[RecordedWindow], list[Compaction]]:
    """Return all windows of a transcript in order, and what ended each but the last."""
    window, ended, causes = RecordedWindow(), list[RecordedWindow](), list[Compaction]()
    for item in transcript.items():
        number = window.number
        window.take(item)
        if window.number > number and window.before is not None and isinstance(item, Compaction):
            ended.append(window.before)
            causes.append(item)
    return [*ended, window], causes


class _Removal:
    """Compares the window that a compaction ended with what the next one began with."""

    def __init__(
        self,
        cause: Compaction,
        before: Sequence[TranscriptEntry],
        after: Sequence[TranscriptEntry],
        count: WindowCount,
    ) -> None:
        brought = takewhile(lambda e: _is_brought(e, cause), after)
        self._cause = cause
        self._count = count
        self._brought = _parts_of(brought)
        kept = {part.key[:2] for _, part in self._brought}
        speakers = _Speakers()
        self._removed = [
            (said, part)
            for entry in before
            for said, part in zip(speakers.parts(entry), _compared(entry), strict=True)
            if part.key[:2] not in kept
        ]
        self._later = [said for entry in after for said in speakers.parts(entry)]

    def record(self, number: int) -> SessionCompaction:
        """Return it as data."""
        by_who: dict[str, int] = {}
        for said, part in self._removed:
            by_who[said.who] = by_who.get(said.who, 0) + self._count.scaled(part.tokens)
        return SessionCompaction(
            number=number,
            line=self._cause.line,
            at=self._cause.written_at,
            trigger=self._cause.trigger,
            tokens_before=self._count.tokens,
            tokens_removed=sum(by_who.values()),
            tokens_brought=sum(self._count.scaled(part.tokens) for _, part in self._brought),
            by_who=by_who,
            removed=[self._part(said, part) for said, part in self._removed],
            asked=[
                self._part(said, part) for said, part in self._removed if starts_turn(said.entry)
            ],
            files=self._files(),
        )

    def _part(self, said: _SpokenPart, part: HistoryPart) -> RemovedPart:
        return RemovedPart(
            line=said.entry.line, who=said.who, about=said.about,
            tokens=self._count.scaled(part.tokens), text=said.text,
        )  # fmt: skip

    def _files(self) -> list[RemovedFile]:
        """Return the files that results had the content of, the largest first."""
        sizes: dict[str, int] = {}
        for said, part in self._removed:
            if said.path is not None and said.who == "result":
                sizes[said.path] = sizes.get(said.path, 0) + self._count.scaled(part.tokens)
        again = [said.path for said in self._later if said.who == "call"]
        return [
            RemovedFile(path=path, tokens=size, used_again=again.count(path))
            for path, size in sorted(sizes.items(), key=lambda row: (-row[1], row[0]))
        ]


def _is_brought(entry: TranscriptEntry, cause: Compaction) -> bool:
    return entry.is_summary or entry.is_aside or entry.message_id in cause.kept


def _compared(entry: TranscriptEntry) -> list[HistoryPart]:
    return compared_history("", [entry.message()]).parts


def _parts_of(entries: Iterable[TranscriptEntry]) -> list[tuple[TranscriptEntry, HistoryPart]]:
    return [(entry, part) for entry in entries for part in _compared(entry)]


# -- Where a phrase came from


_MODEL = frozenset(("model", "thinking", "call", "summary"))
"""Who repeats or infers; all others bring something into a session."""
_BEFORE, _AFTER = 24, 60
_LONGEST_KEY = 4_000
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_MOST_NEAR = 5
_LEAST_NEAR = 0.5


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a phrase, or part of it, is: `share` of its words are on that line.

    `window` is the number of the context window, 0 for subagents; `in_window` says whether it is in the
    window now. `file` is set for a subagent that has a file of its own.
    """

    line: int
    window: int
    who: str
    about: str
    text: str
    in_window: bool
    share: float = 1.0
    file: str = ""
    at: datetime | None = None


class NameOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a name or a number of a phrase was seen before the model said the phrase; None if nowhere."""

    name: str
    origin: Occurrence | None


class PhraseTrace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a phrase came from.

    `found` are all places with it, the first one first. `origin` is the first one by somebody else than the
    model before the model said it; None if the model was the first. Then `names` says where each name and
    number in the phrase came from. `near` are the lines that have most of its words, if none has all of it.
    """

    phrase: str
    found: list[Occurrence]
    origin: Occurrence | None
    names: list[NameOrigin]
    near: list[Occurrence]


def trace_phrase(path: Path, phrase: str) -> PhraseTrace:
    """Return where a phrase came from: who said it first in a session, and who repeated it.

    Upper and lower case, and how it is broken into lines, make no difference.

    Raises:
        InputError: the phrase is blank.
        TranscriptError: the file cannot be read.
    """
    if not phrase.split():
        raise InputError("the phrase is blank", hint='for example ctxgc trace "3 tests failed"')
    session = _Spoken(path)
    found = list(session.places(phrase))
    first = found[0] if found else None
    is_brought = first is not None and first.who not in _MODEL
    names = [] if first is None or is_brought else list(session.names(phrase, first))
    return PhraseTrace(
        phrase=phrase,
        found=found,
        origin=first if is_brought else None,
        names=names,
        near=[] if found else session.near(phrase),
    )


class _Spot(NamedTuple):
    """A part with where it is."""

    said: _SpokenPart
    window: int
    file: str


class _Spoken:
    """All that was said in a session, its subagents included, in order."""

    def __init__(self, path: Path) -> None:
        transcript, window, speakers = open_transcript(path), RecordedWindow(), _Speakers()
        self._places: list[_Spot] = []
        for item in transcript.items():
            window.take(item)
            if isinstance(item, TranscriptEntry):
                number = 0 if item.is_side else window.number
                self._places += (_Spot(s, number, "") for s in speakers.parts(item))
        now = window.entries(chained=transcript.kind == "claude_code")
        self._now = {entry.message_id for entry in now}
        for file in subagent_files(path):
            self._add_subagent(file)

    def places(self, phrase: str) -> Iterator[Occurrence]:
        """Yield the places with a phrase."""
        sought = _flat(phrase)
        for place in self._places:
            text = " ".join(place.said.text.split())
            at = text.casefold().find(sought)
            if at >= 0:
                yield self._shown(place, _passage(text, at, at + len(sought)))

    def names(self, phrase: str, first: Occurrence) -> Iterator[NameOrigin]:
        """Yield where the names and numbers of a phrase came from, before it was first said."""
        known = set(identifiers(phrase))
        for name in dict.fromkeys(tokens(phrase)):
            number = _NUMBER.match(name)  # with another unit, or none, it is the same number
            if number is not None or name in known:
                wanted = number[0] if number is not None else name
                yield NameOrigin(name=wanted, origin=self._first_with(wanted, first))

    def near(self, phrase: str) -> list[Occurrence]:
        """Return the lines that have most of the words of a phrase, the best first."""
        words = set(tokens(_flat(phrase)))
        first = {
            " ".join(line.split()): (share, place) for share, line, place in self._lines(words)
        }
        ranked = sorted(first.items(), key=lambda row: -row[1][0])[:_MOST_NEAR]
        return [self._shown(place, line, share=round(share, 2)) for line, (share, place) in ranked]

    def _lines(self, words: set[str]) -> Iterator[tuple[float, str, _Spot]]:
        for place in reversed(self._places):  # of equal lines the first one stays
            if not words or words.isdisjoint(tokens(place.said.text.casefold())):
                continue
            shares = (
                (len(words.intersection(tokens(line.casefold()))) / len(words), line)
                for line in place.said.text.splitlines()
            )
            share, line = max(shares, key=lambda row: row[0], default=(0.0, ""))
            if share >= _LEAST_NEAR:
                yield share, line, place

    def _first_with(self, name: str, before: Occurrence) -> Occurrence | None:
        after = r"(?![.,]?\d)" if name[0].isdigit() else r"(?!\w)"
        whole = re.compile(rf"(?<!\w)(?<!\d\.){re.escape(name)}{after}", re.IGNORECASE)
        for place in self._places:
            if place.said.who in _MODEL or not _is_before(place, before):
                continue
            hit = whole.search(place.said.text)
            if hit is not None:
                return self._shown(place, _passage(place.said.text, hit.start(), hit.end()))
        return None

    def _add_subagent(self, file: Path) -> None:
        speakers = _Speakers()
        for item in open_transcript(file).items():
            if isinstance(item, TranscriptEntry):
                self._places += (_Spot(s, 0, str(file)) for s in speakers.parts(item))

    def _shown(self, place: _Spot, text: str, share: float = 1.0) -> Occurrence:
        entry = place.said.entry
        return Occurrence(
            line=entry.line, window=place.window, who=place.said.who, about=place.said.about,
            text=text, in_window=not place.file and entry.message_id in self._now, share=share,
            file=place.file, at=entry.written_at,
        )  # fmt: skip


def _is_before(place: _Spot, other: Occurrence) -> bool:
    entry = place.said.entry
    if place.file == other.file:
        return entry.line < other.line
    then = entry.written_at
    return then is not None and other.at is not None and then < other.at


def _passage(text: str, start: int, end: int) -> str:
    """Return a place in a text with a little of what is around it: no likely key, nor a piece of one."""
    before = mask_secrets(text[max(0, start - _LONGEST_KEY) : start])[-_BEFORE:]
    after = mask_secrets(text[end : end + _LONGEST_KEY])[:_AFTER]
    return " ".join(f"{before}{text[start:end]}{after}".split())


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()
