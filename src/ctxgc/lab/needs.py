"""Needs: what each answer of the agent used that it could only know from further back.

They depend on the run alone, so they are found once and every policy is judged by the same ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from ctxgc.lab.entries import Entries, Entry, Width
from ctxgc.lab.regimes import head_of
from ctxgc.lab.runs import Run

NEWEST = 2
RAREST = 3


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One request, and what the answer to it used.

    `index` is the number of the answer: the request carries the messages before it. `needs` are
    facts, `lines` verbatim lines and `words` rare plain words that it used again; none of them
    stands in the head or in the last two messages. `newest` are the results it was the first to see.
    """

    index: int
    needs: tuple[str, ...]
    lines: tuple[str, ...]
    words: tuple[str, ...]
    newest: tuple[int, ...]


class Postings:
    """Where something stands: for each key the numbers of its messages, in order."""

    def __init__(self) -> None:
        self._at: dict[str, list[int]] = {}

    def add(self, keys: Iterable[str], number: int) -> None:
        """Note that a message holds these."""
        for key in keys:
            self._at.setdefault(key, []).append(number)

    def before(self, key: str, number: int) -> list[int]:
        """Return the messages before `number` that hold a key."""
        return [at for at in self._at.get(key, ()) if at < number]

    def __contains__(self, key: str) -> bool:
        return key in self._at


class Needs:
    """A run, read: its entries, its steps, and where each fact, line and word stands."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.library = Entries()
        self.entries = [self.library.of(message) for message in run.messages]
        self.head = head_of(run.messages)
        self.facts, self.lines, self.words = Postings(), Postings(), Postings()
        self._windows: dict[tuple[str, Width], dict[str, int]] = {}
        self.steps = list(self._steps())
        """One for each assistant message behind the first user message."""

    def is_original(self, fact: str, window: str, width: Width, index: int) -> bool:
        """Tell whether a fact stood in these surroundings in a message before `index`."""
        first = self._windows.get((fact, width))
        if first is None:
            first = self._windows[fact, width] = {}
            for at in self.facts.before(fact, len(self.entries)):
                for each in self.entries[at].windows(fact, width):
                    first.setdefault(each, at)
        return first.get(window, index) < index

    def _steps(self) -> Iterator[Step]:
        asked = next((i for i in self.head if self._role(i) == "user"), 0)
        for index, entry in enumerate(self.entries):
            if self._role(index) == "assistant" and index > asked:
                yield self._step(index, entry)
            self.facts.add(entry.facts, index)
            self.lines.add(entry.lines, index)
            self.words.add(entry.words, index)

    def _step(self, index: int, answer: Entry) -> Step:
        near = {*(i for i in self.head if i < index), *range(max(0, index - NEWEST), index)}
        close = [self.entries[i] for i in near]
        return Step(
            index=index,
            needs=_again(answer.facts, self.facts, [e.facts for e in close]),
            lines=_again(answer.lines, self.lines, [e.lines for e in close]),
            words=self._rare(_again(answer.words, self.words, [e.words for e in close]), index),
            newest=self._results(index),
        )

    def _rare(self, words: tuple[str, ...], index: int) -> tuple[str, ...]:
        return tuple(word for word in words if len(self.words.before(word, index)) <= RAREST)

    def _results(self, index: int) -> tuple[int, ...]:
        """Return the tool results right before an answer."""
        start = index
        while start and self._role(start - 1) == "tool":
            start -= 1
        return tuple(range(start, index))

    def _role(self, index: int) -> object:
        return self.entries[index].message.get("role")


def _again(used: Iterable[str], seen: Postings, close: list[Collection[str]]) -> tuple[str, ...]:
    return tuple(sorted(k for k in used if k in seen and not any(k in each for each in close)))
