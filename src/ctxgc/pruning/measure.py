"""How the provider counts the window of a transcript, learned from what it reported for its requests."""

from __future__ import annotations

import msgspec

from ctxgc.tokens import Calibration, EstimatedCounter, TokenCounter, counter_for
from ctxgc.tokens.calibration import QUORUM
from ctxgc.tokens.growth import Reported, counted_before, scale_of
from ctxgc.tokens.messages import message_tokens
from ctxgc.wire.json_text import dump
from ctxgc.wire.transcripts.entry import Entry
from ctxgc.wire.transcripts.revision import Writable


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """What counts the window as its provider does.

    `beside` is what a request holds beside the messages of the file, such as the system prompt;
    `prompt` what the newest request took, None if nothing is reported.
    """

    counter: TokenCounter
    beside: int = 0
    prompt: int | None = None

    def without(self, tokens: int) -> int | None:
        """Return what the newest request would have taken without so many tokens of messages."""
        return None if self.prompt is None else max(self.beside, self.prompt - tokens)


def measure(file: Writable) -> Measure:
    """Return how the window of a transcript is counted: by its reports, without any in o200k."""
    if not file.usages:
        return Measure(counter=counter_for(None))
    counter = counter_for(file.facts.model)
    sizes = [(entry.line, _size(entry, counter)) for entry in file.entries]
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
    )


def _size(entry: Entry, counter: TokenCounter) -> int:
    message = entry.message()
    return counter.count(dump(entry.data)) if message is None else message_tokens(message, counter)
