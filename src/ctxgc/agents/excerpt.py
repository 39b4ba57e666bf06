"""Which lines of a huge output stay: its head, its tail, and those that match.

Matching lines are those with errors, and those with words of the call or of the last request; a word
that stands in many lines says nothing and is left out. What stays is verbatim, and each gap names the
lines that are missing, so that they can be asked for.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

HEAD, TAIL, MATCHING = 1_300, 1_300, 1_600
"""How many characters stay of each."""

MOST_LINE = 240
COMMON = 40
"""A word in more lines than these is no help."""

MOST_WORDS = 24
ERRORS = (
    "error", "exception", "traceback", "failed", "failure", "fatal", "panic", "assert", "denied",
)  # fmt: skip
_WORD = re.compile(r"[\w][\w./:@-]{2,80}\w")
_NEAREST_ERRORS = 6


def words_in(*texts: str) -> list[str]:
    """Return the words of texts that may be looked for, without repeats, the longest first."""
    found = {word.lower() for text in texts for word in _WORD.findall(text[:4_000])}
    return sorted(found, key=lambda word: (-len(word), word))[:MOST_WORDS]


def excerpt(text: str, words: Iterable[str]) -> str:
    """Return the lines of a text that stay, with marks where others are missing."""
    lines = text.split("\n")
    kept = {*_within(lines, range(len(lines)), HEAD)}
    kept.update(_within(lines, range(len(lines) - 1, -1, -1), TAIL))
    matching = (n for n in _best_lines(text, lines, words) if n not in kept)
    kept.update([*_within(lines, matching, MATCHING)])
    return "\n".join(_with_gaps(lines, sorted(kept)))


def _within(lines: list[str], order: Iterable[int], room: int) -> Iterable[int]:
    for number in order:
        room -= min(len(lines[number]), MOST_LINE) + 1
        if room < 0:
            return
        yield number


def _best_lines(text: str, lines: list[str], words: Iterable[str]) -> list[int]:
    """Return the matching lines, best first: rare words weigh more, an error as much as a rare word."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter that has no small form of its own length
        lowered = text
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    worth: dict[int, float] = {}
    for word in words:
        found = _lines_with(lowered, starts, word, COMMON + 1)
        for number in found if len(found) <= COMMON else ():
            worth[number] = worth.get(number, 0.0) + 1 / len(found)
    for number in _error_lines(lowered, starts):
        worth[number] = worth.get(number, 0.0) + 0.5
    return sorted(worth, key=lambda number: (-worth[number], number))


def _error_lines(lowered: str, starts: list[int]) -> list[int]:
    found = sorted({n for word in ERRORS for n in _ends(lowered, starts, word)})
    return [*found[:_NEAREST_ERRORS], *found[-_NEAREST_ERRORS:]]


def _ends(lowered: str, starts: list[int], word: str) -> list[int]:
    """Return the first and the last lines with a word."""
    first = _lines_with(lowered, starts, word, _NEAREST_ERRORS)
    last: list[int] = []
    end = len(lowered)
    while len(last) < _NEAREST_ERRORS and (place := lowered.rfind(word, 0, end)) >= 0:
        last.append(bisect_right(starts, place) - 1)
        end = starts[last[-1]]
    return [*first, *last]


def _lines_with(lowered: str, starts: list[int], word: str, most: int) -> list[int]:
    found: list[int] = []
    place = lowered.find(word)
    while place >= 0 and len(found) < most:
        found.append(bisect_right(starts, place) - 1)
        place = lowered.find(word, starts[found[-1] + 1])
    return found


def _with_gaps(lines: list[str], kept: list[int]) -> Iterable[str]:
    last = -1
    for number in [*kept, len(lines)]:
        if number > last + 1:
            missing = f"line {number}" if number == last + 2 else f"lines {last + 2} to {number}"
            yield f"[... {missing} ...]"
        if number < len(lines):
            yield _short(lines[number])
        last = number


def _short(line: str) -> str:
    if len(line) <= MOST_LINE:
        return line
    return f"{line[:MOST_LINE]} [... {len(line) - MOST_LINE} characters ...]"
