"""How the provider counts the window of a transcript, learned from what it reported for its requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ctxgc.errors import MessageError
from ctxgc.tokens import Calibration, EstimatedCounter, TokenCounter, counter_for
from ctxgc.tokens.calibration import QUORUM
from ctxgc.tokens.growth import Reported, counted_before, scale_of
from ctxgc.tokens.messages import message_tokens
from ctxgc.wire import parse
from ctxgc.wire.json_text import dump
from ctxgc.wire.transcripts.entry import Entry
from ctxgc.wire.transcripts.revision import Revision, Writable


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """What counts the window as its provider does.

    `beside` is what a request holds beside the messages of the file, such as the system prompt.
    `prompt` is what the newest request took, whose answer begins on `line`; None if nothing is reported.
    """

    counter: TokenCounter
    beside: int = 0
    prompt: int | None = None
    line: int = 0

    def after(self, entries: Sequence[Entry], revision: Revision) -> int | None:
        """Return what the newest request would have taken with a revision; None if that is not known."""
        if self.prompt is None:
            return None
        there = [entry for entry in entries if entry.line < self.line]
        saved = sum(_saved(entry, revision, self.counter) for entry in there)
        return max(self.beside, self.prompt - saved)


def measure(file: Writable) -> Measure:
    """Return how the window of a transcript is counted: by its reports, without any in o200k."""
    if not file.usages:
        return Measure(counter=counter_for(None))
    counter = counter_for(file.facts.model)
    sizes = [(entry.line, _size(entry.data, entry, counter)) for entry in file.entries]
    counted = counted_before(sizes, [usage.line for usage in file.usages])
    told = [Reported(n, u.prompt, u.beside) for n, u in zip(counted, file.usages, strict=True)]
    scale = scale_of(told)
    if scale is None or not isinstance(counter, EstimatedCounter):
        scale = 1.0
    else:
        counter.calibration = Calibration([scale] * QUORUM)
    return Measure(
        counter=counter,
        beside=max(0, told[-1].prompt - round(told[-1].counted * scale)),
        prompt=told[-1].prompt,
        line=file.usages[-1].line,
    )


def _saved(entry: Entry, revision: Revision, counter: TokenCounter) -> int:
    """Return by how much a request shrinks at an entry."""
    name = entry.message_id
    new = [addition.data for addition in revision.before(name)]
    old = [entry.data] if name in revision.gone or name in revision.edited else []
    if name in revision.edited:
        new.append(revision.edited[name])
    was, now = (sum(_size(data, entry, counter) for data in side) for side in (old, new))
    return was - now


def _size(data: Mapping[str, Any], entry: Entry, counter: TokenCounter) -> int:
    try:
        return message_tokens(parse(dict(data), entry.format, entry.message_id), counter)
    except MessageError:
        return counter.count(dump(dict(data)))
