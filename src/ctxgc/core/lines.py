"""What stands in a line of text: long plain words, and the line itself, told apart from others."""

from __future__ import annotations

import re

from ctxgc.core.evacuate import MAX_LINE, split_lines

LONG_LINE = 20
_NUMBER = re.compile(r"\s*\d+(?:→|\t|:|\|)[ ]?")
_LONG_WORD = re.compile(r"[A-Za-z]{7,}")


def pieces_of(text: str) -> tuple[list[str], list[str]]:
    """Return a text in pieces, and what follows each: a newline, or nothing inside a very long line."""
    lines = text.split("\n")
    if max(map(len, lines)) <= MAX_LINE:
        return lines, ["\n"] * len(lines)
    pieces: list[str] = []
    ends: list[str] = []
    for line in lines:
        found = split_lines(line)
        pieces += found
        ends += [""] * (len(found) - 1) + ["\n"]
    return pieces, ends


def is_numbered(line: str) -> bool:
    """Tell whether a viewer put a number in front of a line."""
    return _NUMBER.match(line) is not None


def bare_line(line: str) -> str:
    """Return a line without the number that a viewer put in front of it, and without outer blanks."""
    found = _NUMBER.match(line)
    return (line[found.end() :] if found else line).strip()


def words_in(text: str) -> frozenset[str]:
    """Return the plain words of seven letters or more, in lower case."""
    return frozenset(map(str.lower, _LONG_WORD.findall(text)))
