"""A text as thrift reads it: once, line by line, with what each line holds."""

from __future__ import annotations

import re

from ctxgc.core.identifiers import is_identifier, tokens
from ctxgc.core.lines import LONG_LINE, bare_line, is_numbered, pieces_of, words_in

_SHORTEST_NAME = 4
_LINE_NUMBERS = re.compile(r"(?::\d+)+\Z")


class Text:
    """The lines of a text; for each one its names, its long plain words, and what it says.

    `bare` is a line without the number that a viewer put in front of it and without outer blanks;
    `key` is that again for lines long enough to be told apart, else an empty text.
    """

    __slots__ = (
        "bare",
        "ends",
        "keys",
        "line_names",
        "line_words",
        "lines",
        "names",
        "size",
        "words",
    )

    def __init__(self, text: str) -> None:
        self.lines, self.ends = pieces_of(text)
        self.size = len(text)
        self.bare = [bare_line(line) for line in self.lines]
        self.keys = [bare if len(bare) >= LONG_LINE else "" for bare in self.bare]
        names = _Names()
        self.line_names = [names.of(line) for line in self.lines]
        self.line_words = [frozenset(words_in(line)) for line in self.lines]
        self.names = frozenset[str]().union(*self.line_names)
        self.words = frozenset[str]().union(*self.line_words)

    def passage(self, first: int, last: int) -> str:
        """Return lines `first` to `last` (not included) as they stand in the text."""
        pieces = zip(self.lines[first:last], self.ends[first:last], strict=True)
        return "".join(line + end for line, end in pieces)

    def is_numbered(self, line: int) -> bool:
        """Tell whether a viewer put a number in front of a line."""
        return is_numbered(self.lines[line])

    def cost(self, line: int) -> int:
        """Return the characters of a line with its end."""
        return len(self.lines[line]) + 1


class _Names(dict[str, str]):
    """The name that each token is, empty when it is none; a text says most of its tokens often."""

    def __missing__(self, token: str) -> str:
        """Look at a token: `file.go:12` is a place in a file, and the file is the name."""
        name = _LINE_NUMBERS.sub("", token) if ":" in token else token
        self[token] = name if len(name) >= _SHORTEST_NAME and is_identifier(name) else ""
        return self[token]

    def of(self, line: str) -> frozenset[str]:
        """Return the names of a line."""
        return frozenset(filter(None, map(self.__getitem__, tokens(line))))
