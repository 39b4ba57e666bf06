"""A text as a collector reads it: once, line by line, with what each line holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Self

from ctxgc.core.evacuate import GAP
from ctxgc.core.identifiers import SCAN_LIMIT, is_identifier, tokens
from ctxgc.core.lines import LONG_LINE, bare_line, is_numbered, pieces_of, words_in

_SHORTEST_NAME = 4
_LINE_NUMBERS = re.compile(r"(?::\d+)+\Z")
_MOST_TOKENS = 1 << 18
_NOTHING = frozenset[str]()


class Names(dict[str, str]):
    """The name that each token is, empty when it is none; a history says most of its tokens often."""

    def __missing__(self, token: str) -> str:
        """Look at a token: `file.go:12` is a place in a file, and the file is the name."""
        if len(self) >= _MOST_TOKENS:
            self.clear()
        name = _LINE_NUMBERS.sub("", token) if ":" in token else token
        self[token] = name if len(name) >= _SHORTEST_NAME and is_identifier(name) else ""
        return self[token]

    def of(self, text: str) -> frozenset[str]:
        """Return the names in a text."""
        return frozenset(map(self.__getitem__, tokens(text))) - {""}


class Text:
    """The lines of a text; for each one its names, its long plain words, and what it says.

    `bare` is a line without the number that a viewer put in front of it and without outer blanks;
    `key` is that again, behind a newline, for lines long enough to be told apart, else an empty text.
    So names, words and keys are never the same: together they are the `things` that a line holds.
    """

    def __init__(self, text: str, names: Names | None = None) -> None:
        self.lines, self.ends = pieces_of(text)
        self.size = len(text)
        self.bare = list(map(bare_line, self.lines))
        self.keys = [f"\n{bare}" if len(bare) >= LONG_LINE else "" for bare in self.bare]
        self._text = text
        self._known = Names() if names is None else names

    @classmethod
    def joined(cls, texts: Iterable[Text]) -> Self:
        """Return one text after the other as one."""
        joined = cls("")
        found = list(texts)
        for name in ("lines", "ends", "bare", "keys", "line_names", "line_words"):
            setattr(joined, name, [each for text in found for each in getattr(text, name)])
        joined.size = sum(text.size + 1 for text in found)
        joined.names = _NOTHING.union(*(text.names for text in found))
        joined.words = _NOTHING.union(*(text.words for text in found))
        return joined

    @cached_property
    def line_names(self) -> list[frozenset[str]]:
        """The names of each line."""
        return list(map(self._known.of, self.lines))

    @cached_property
    def line_words(self) -> list[frozenset[str]]:
        """The long plain words of each line, in lower case."""
        return list(map(words_in, self.lines))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all lines."""
        if "line_names" in self.__dict__ or not self._is_plain:
            return _NOTHING.union(*self.line_names)
        return self._known.of(self._text)

    @cached_property
    def words(self) -> frozenset[str]:
        """The long plain words of all lines."""
        if "line_words" in self.__dict__ or not self._is_plain:
            return _NOTHING.union(*self.line_words)
        return words_in(self._text)

    @cached_property
    def line_keys(self) -> frozenset[str]:
        """The keys of all lines that have one."""
        return frozenset(self.keys) - {""}

    @cached_property
    def line_things(self) -> list[frozenset[str]]:
        """All that each line holds."""
        return [
            names | words | {key} if key else names | words
            for names, words, key in zip(self.line_names, self.line_words, self.keys, strict=True)
        ]

    @cached_property
    def things(self) -> frozenset[str]:
        """All that the text holds."""
        return self.names | self.words | self.line_keys

    def passage(self, first: int, last: int) -> str:
        """Return lines `first` to `last` (not included) as they stand in the text."""
        pieces = zip(self.lines[first:last], self.ends[first:last], strict=True)
        return "".join(line + end for line, end in pieces)

    def excerpt(self, kept: Sequence[int]) -> str:
        """Return the lines that stay, verbatim, with a mark for each gap between them."""
        shown: list[str] = []
        last = -1
        for place in kept:
            if shown:
                shown.append(self.ends[last] if place == last + 1 else f"\n{GAP}\n")
            shown.append(self.lines[place])
            last = place
        return "".join(shown)

    def is_numbered(self, line: int) -> bool:
        """Tell whether a viewer put a number in front of a line."""
        return is_numbered(self.lines[line])

    def cost(self, line: int) -> int:
        """Return the characters of a line with its end."""
        return len(self.lines[line]) + 1

    @property
    def _is_plain(self) -> bool:
        """Whether reading the text at once finds what reading its lines would."""
        return self.size <= SCAN_LIMIT and len(self.lines) == self._text.count("\n") + 1


def is_line(thing: str) -> bool:
    """Tell whether a thing is a whole line."""
    return thing[0] == "\n"


def is_word(thing: str) -> bool:
    """Tell whether a thing is a plain word."""
    return thing.isalpha() and thing.islower() and thing.isascii()
