"""Arrival: a result in fewer words, before it is sent for the first time, so that nothing cached changes.

Numbers of lines and paths of hits are said less often; which line is which follows from the numbers that
stay, and whose hit is whose from the path above it. A huge result for which there is no room is admitted by
some of its lines, with marks that count the others, rather than that it drives out what the agent gathered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from ctxgc.collector.excerpt import Excerpt
from ctxgc.collector.presets import Preset
from ctxgc.collector.reader import Item
from ctxgc.core import Evidence, looks_like_ours, short_tombstone

IN_FEWER_WORDS = Evidence(kind="arrival", how="the same in fewer words")

LEAST_LINES = 8
_SHARE = 0.6
_NUMBERED = re.compile(r"[^\S\n]*(\d{1,9})[→\t]")

LEAST_HITS = 3
LEAST_PATH = 12
_HIT = re.compile(r"(?P<path>[^\s:][^:\n]*[./][^:\n]*):(?P<rest>\d+[:-].*)")


def shortened(item: Item, text: str, how: Preset) -> str | None:
    """Return a new result in fewer words; None where there are none."""
    if item.call.recalls:
        return None
    if how.thin_numbers and not item.call.asks_range:
        thin = without_numbers(text, how.thin_numbers)
        if thin is not None:
            return thin
    return under_paths(text) if how.groups_hits else None


def without_numbers(text: str, every: int) -> str | None:
    """Return a view with its first line number and those that `every` divides; None where it is not a view.

    A line that would look like one of our notes without its number keeps it.
    """
    lines = text.split("\n")
    found = [_NUMBERED.match(line) for line in lines]
    numbers = [int(number[1]) for number in found if number]
    if len(lines) < LEAST_LINES or len(numbers) < _SHARE * len(lines) or not _rise(numbers):
        return None
    return "\n".join(
        line if number is None or _stays(line, number, numbers[0], every) else line[number.end() :]
        for line, number in zip(lines, found, strict=True)
    )


def _stays(line: str, number: re.Match[str], first: int, every: int) -> bool:
    is_kept = int(number[1]) == first or int(number[1]) % every == 0
    return is_kept or looks_like_ours(line[number.end() :])


def _rise(numbers: Sequence[int]) -> bool:
    """Tell whether each number is one more than the last: a table with numbers in front is not a view."""
    return list(numbers) == list(range(numbers[0], numbers[0] + len(numbers)))


def under_paths(text: str) -> str | None:
    """Return the hits of a search with each path once, above its hits; None where that wins nothing."""
    lines = text.split("\n")
    if sum(1 for line in lines if _HIT.fullmatch(line)) < LEAST_HITS:
        return None
    short = "\n".join(_told(lines))
    is_ours = any(map(looks_like_ours, short.split("\n")))
    return None if is_ours or len(short) >= len(text) else short


def _told(lines: Iterable[str]) -> Iterator[str]:
    for path, hits in groupby(lines, _path):
        found = list(hits)
        if len(path) < LEAST_PATH or len(found) < LEAST_HITS:
            yield from found
            continue
        yield f"{path}:"
        yield from (line[len(path) + 1 :] for line in found)


def _path(line: str) -> str:
    found = _HIT.fullmatch(line)
    return found["path"] if found else ""


# -- Huge results


HUGE, ADMITTED = 0.5, 0.25
"""The share of the window from which on a result is huge, and that which it gets where it does not fit."""
_HEAD, _TAIL, _MATCHING = 0.25, 0.35, 0.2
"""The shares of the start, the end, and of errors and asked words in what stays; names get the rest."""
_MARGIN = 0.9  # characters and tokens do not shrink by the same share


class Admitted(NamedTuple):
    """What is shown of a huge result, which of its lines that are, and why."""

    text: str
    kept: tuple[int, ...]
    evidence: Evidence


def admitted(
    item: Item, *, tokens: int, most: float, words: Iterable[str], names: Iterable[str], recall: str
) -> Admitted:
    """Return what is shown of a huge result.

    Args:
        item: the result.
        tokens: what it has.
        most: what it may have.
        words: what its reader is likely to look for.
        names: what only it holds.
        recall: the call that shows all of it.
    """
    text = item.text.passage(0, len(item.text.lines)).removesuffix("\n")
    room = len(text) * _MARGIN * most / max(1, tokens)
    found = Excerpt(text)
    found.keep_ends(_HEAD * room, _TAIL * room)
    found.keep_matches(words, _MATCHING * room)
    found.keep_names(names, (1 - _HEAD - _TAIL - _MATCHING) * room)
    hidden = f"{len(found.pieces) - len(found.kept):,} of {len(found.pieces):,} lines not shown"
    said = short_tombstone(
        tokens, f"too large: {hidden}", recall=recall, names=(), kept=found.written()
    )
    why = Evidence(kind="arrival", how=f"too large for the window, {hidden}", tokens=tokens)
    return Admitted(said, tuple(sorted(found.kept)), why)
