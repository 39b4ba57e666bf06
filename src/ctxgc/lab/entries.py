"""Entries: messages by their bytes, each read once, with what the judge looks for in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec

from ctxgc.lab.facts import lines_in, tokens_in
from ctxgc.lab.texts import texts_of
from ctxgc.lab.weights import message_weight

AROUND = 24
Place = tuple[int, int]
Width = Literal["line", "wide"]


class Entry:
    """One message as it is sent; two messages with the same bytes are the same entry."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.message = message
        self.texts = texts_of(message)
        self._windows: dict[tuple[str, Width], frozenset[str]] = {}

    @cached_property
    def tokens(self) -> int:
        """The size of the message."""
        return message_weight(self.message)

    @cached_property
    def lines(self) -> frozenset[str]:
        """Its lines of 20 characters or more."""
        return frozenset(line for text in self.texts for line in lines_in(text))

    @cached_property
    def _read(self) -> tuple[dict[str, list[Place]], frozenset[str]]:
        facts: dict[str, list[Place]] = {}
        words: set[str] = set()
        for number, text in enumerate(self.texts):
            for (fact, plain), start in tokens_in(text):
                if fact:
                    facts.setdefault(fact, []).append((number, start))
                else:
                    words.update(plain)
        return facts, frozenset(words)

    @property
    def facts(self) -> dict[str, list[Place]]:
        """Its facts, with where they stand: which text, which character."""
        return self._read[0]

    @property
    def words(self) -> frozenset[str]:
        """Its plain words."""
        return self._read[1]

    def windows(self, fact: str, width: Width) -> frozenset[str]:
        """Return the surroundings in which a fact stands here: 24 characters to each side.

        They end where the text ends and, unless `wide` is asked for, where the line does.
        """
        known = self._windows.get((fact, width))
        if known is None:
            places = self.facts.get(fact, ())
            known = frozenset(_window(self.texts[n], at, len(fact), width) for n, at in places)
            self._windows[fact, width] = known
        return known


def _window(text: str, start: int, length: int, width: Width) -> str:
    first, last = max(0, start - AROUND), start + length + AROUND
    if width == "line":
        first = max(first, text.rfind("\n", 0, start) + 1)
        end = text.find("\n", start + length)
        last = last if end < 0 else min(last, end)
    # The fact's own place within the window is part of what is compared.
    return f"{start - first}:{text[first:last]}"


class Entries:
    """Knows every message that was seen by its bytes."""

    def __init__(self) -> None:
        self._known: dict[bytes, Entry] = {}

    def of(self, message: dict[str, Any]) -> Entry:
        """Return the entry of a message."""
        key = msgspec.json.encode(message)
        entry = self._known.get(key)
        if entry is None:
            # From the bytes, since the owner of the message may change it later.
            entry = self._known[key] = Entry(msgspec.json.decode(key))
        return entry


class Lens:
    """Reads the views of one policy; an object that it handed out before, unchanged, is known at once."""

    def __init__(self, library: Entries) -> None:
        self._library = library
        self._seen: dict[int, tuple[dict[str, Any], Entry]] = {}

    def read(self, view: Sequence[dict[str, Any]]) -> list[Entry]:
        """Return the entries of a view."""
        return [self._entry(message) for message in view]

    def _entry(self, message: dict[str, Any]) -> Entry:
        known = self._seen.get(id(message))
        # Comparing costs a tenth of writing the bytes; the object is held, so its id is its own.
        if known is not None and known[1].message == message:
            return known[1]
        entry = self._library.of(message)
        self._seen[id(message)] = message, entry
        return entry
