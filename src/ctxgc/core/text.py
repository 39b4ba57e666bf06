"""A text as a collector reads it: once, line by line, with what each line holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from typing import Self

# -- Identifiers: paths, symbols, ids and long numbers


# Possessive runs keep the scan linear on hostile text (a megabyte of "a.a.a.a").
_TOKEN = re.compile(r"[A-Za-z0-9_$~@][\w$@]*+(?:[./:\\#-]++[\w$@]++)*+")
_ORDINARY = re.compile(r"[A-Za-z]?[a-z]+(?:-[a-z]+)*|[A-Z]+|\d{1,3}")

MAX_LENGTH = 200
MAX_PER_TEXT = 1024
SCAN_LIMIT = 262_144


def is_identifier(token: str) -> bool:
    """Return whether a token carries a reference rather than being an ordinary word or small number."""
    if not 3 <= len(token) <= MAX_LENGTH:
        return False
    # Most tokens are plain words, and this recognises them four times faster than the pattern.
    if token.isalpha() and token.islower() and token.isascii():
        return False
    # This recognises most of the others: the only mark in an ordinary token is a dash.
    if "-" not in token and not token.isalnum():
        return True
    return _ORDINARY.fullmatch(token) is None


def identifiers(text: str, limit: int = MAX_PER_TEXT) -> list[str]:
    """Return the distinct identifiers of a text in the order of their first appearance.

    At most `limit` are returned and at most `SCAN_LIMIT` characters read, so the work is bounded.
    """
    distinct = dict.fromkeys(tokens(text))
    return list(islice(filter(is_identifier, distinct), limit))


def tokens(text: str) -> list[str]:
    """Return the tokens of a text in order, plain words and numbers among them."""
    found: list[str] = _TOKEN.findall(text, 0, SCAN_LIMIT)
    return found


def looks_like_path(token: str) -> bool:
    """Return whether an identifier is a file path: it has a slash, or a short extension at its end."""
    if "/" in token:
        return not token.startswith("//")
    stem, dot, extension = token.rpartition(".")
    return bool(stem and dot) and extension.isalnum() and len(extension) <= 5 and not stem.isdigit()


# -- Lines and what they hold


MAX_LINE = 200
LONG_LINE = 20
_SENTENCE_END = re.compile(r"[.!?]\s")
_FIELD_END = re.compile(r"[,;}\])\s]")
_VALUE = re.compile(r"\d|[\w\"']\s*[:=]\s*\S|\|.*\|")
_BETWEEN_NAMES = re.compile(r"[^\w$~@./:\\#-]")
_NUMBER = re.compile(r"\s*\d+(?:→|\t|:|\|)[ ]?")
_LONG_WORD = re.compile(r"[A-Za-z]{7,}")


def pieces_of(text: str) -> tuple[list[str], list[str]]:
    """Return a text in pieces, and what follows each: a newline, or nothing inside a very long line.

    Lines are pieces; very long ones are cut at the end of a field.
    """
    lines = text.split("\n")
    if max(map(len, lines)) <= MAX_LINE:
        return lines, ["\n"] * len(lines)
    pieces: list[str] = []
    ends: list[str] = []
    for line in lines:
        start = 0
        while len(line) - start > MAX_LINE:
            end = _field_end(line, start)
            pieces.append(line[start:end])
            ends.append("")
            start = end
        pieces.append(line[start:])
        ends.append("\n")
    return pieces, ends


def _field_end(line: str, start: int) -> int:
    """Return where to cut: after a sentence or a field, else between two names, else where the room ends."""
    half = start + MAX_LINE // 2
    for mark, first in ((_SENTENCE_END, half), (_FIELD_END, half), (_BETWEEN_NAMES, start)):
        ends = [match.end() for match in mark.finditer(line, first, start + MAX_LINE)]
        if ends:
            return ends[-1]
    return start + MAX_LINE


def bare_line(line: str) -> str:
    """Return a line without the number that a viewer put in front of it, and without outer blanks."""
    found = _NUMBER.match(line)
    return (line[found.end() :] if found else line).strip()


def has_value(line: str) -> bool:
    """Return whether a bare line says a value: a number, a field with what it holds, or a row of a table."""
    return _VALUE.search(line) is not None


def words_in(text: str) -> frozenset[str]:
    """Return the plain words of seven letters or more, in lower case."""
    return frozenset(map(str.lower, _LONG_WORD.findall(text)))


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
    `key` is a newline and `bare`, for lines long enough to be distinctive, else an empty text.
    So a name, a word and a key never coincide: together they are the `things` that a line holds.
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
    def value_lines(self) -> frozenset[int]:
        """The lines that say a value."""
        return frozenset(n for n, bare in enumerate(self.bare) if has_value(bare))

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
        """Return lines `first` to `last` (not included), verbatim."""
        pieces = zip(self.lines[first:last], self.ends[first:last], strict=True)
        return "".join(line + end for line, end in pieces)

    def is_numbered(self, line: int) -> bool:
        """Return whether a viewer put a number in front of a line."""
        return _NUMBER.match(self.lines[line]) is not None

    def has_value(self, line: int) -> bool:
        """Return whether a line says a value."""
        return line in self.value_lines

    def cost(self, line: int) -> int:
        """Return the characters of a line with its end."""
        return len(self.lines[line]) + 1

    @property
    def _is_plain(self) -> bool:
        """Whether reading the text at once finds what reading its lines would."""
        return self.size <= SCAN_LIMIT and len(self.lines) == self._text.count("\n") + 1


def is_line(thing: str) -> bool:
    """Return whether a thing is a whole line."""
    return thing[0] == "\n"


def is_word(thing: str) -> bool:
    """Return whether a thing is a plain word."""
    return thing.isalpha() and thing.islower() and thing.isascii()
