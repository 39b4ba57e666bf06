"""Needs: what each answer of the agent used that it could only know from further back.

They depend only on the run, so they are found once and every policy is judged by the same ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec

from ctxgc.lab.evidence import FoundEvidence, evidence_in, shown_in
from ctxgc.lab.facts import lines_in, message_weight, texts_of, tokens_in, without_gutters
from ctxgc.lab.regimes import head_of
from ctxgc.lab.runs import Run

AROUND = 24
_REACH = 8 * AROUND
_Place = tuple[int, int]
Width = Literal["line", "wide"]


class SentMessage:
    """One message as it is sent, with its facts, lines and words; equal bytes are the same object."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.message = message
        self.texts = texts_of(message)
        self._windows: dict[tuple[str, Width], frozenset[str]] = {}

    @cached_property
    def text(self) -> bytes:
        """All its texts, one below the other."""
        return "\n".join(self.texts).encode("utf-8", "surrogatepass")

    @cached_property
    def tokens(self) -> int:
        """The size of the message."""
        return message_weight(self.message)

    @cached_property
    def lines(self) -> frozenset[str]:
        """Its lines of 20 characters or more."""
        return frozenset(line for text in self.texts for line in lines_in(text))

    @cached_property
    def evidence(self) -> frozenset[FoundEvidence]:
        """The evidence that it brings."""
        return evidence_in(self.message)

    @cached_property
    def shown(self) -> frozenset[str]:
        """Everything that counts as said in it."""
        return shown_in(self.texts)

    @cached_property
    def _read(self) -> tuple[dict[str, list[_Place]], frozenset[str]]:
        facts: dict[str, list[_Place]] = {}
        words: set[str] = set()
        for number, text in enumerate(self.texts):
            for (fact, plain), start in tokens_in(text):
                if fact:
                    facts.setdefault(fact, []).append((number, start))
                else:
                    words.update(plain)
        return facts, frozenset(words)

    @property
    def facts(self) -> dict[str, list[_Place]]:
        """Its facts with their places: number of the text, position in it."""
        return self._read[0]

    @property
    def words(self) -> frozenset[str]:
        """Its plain words."""
        return self._read[1]

    def windows(self, fact: str, width: Width) -> frozenset[str]:
        """Return the surroundings of a fact in this message: 24 characters on each side.

        The line numbers of a view are not part of them. They end where the text ends and, unless the
        width is `wide`, where the line ends.
        """
        known = self._windows.get((fact, width))
        if known is None:
            places = self.facts.get(fact, ())
            known = frozenset(_window(self.texts[n], at, len(fact), width) for n, at in places)
            self._windows[fact, width] = known
        return known


def _window(text: str, start: int, length: int, width: Width) -> str:
    end = start + length
    before = without_gutters(text[max(0, start - _REACH) : start])
    # What follows a fact is not at the beginning of a line, whatever it looks like.
    after = without_gutters(f"-{text[end : end + _REACH]}")[1:]
    if width == "line":
        before, after = before.rpartition("\n")[2], after.partition("\n")[0]
    before, after = before[-AROUND:], after[:AROUND]
    # The fact's position within the window is part of what is compared.
    return f"{len(before)}:{before}{text[start:end]}{after}"


class SentMessages:
    """All messages seen so far, by their bytes."""

    def __init__(self) -> None:
        self._known: dict[bytes, SentMessage] = {}

    def of(self, message: dict[str, Any]) -> SentMessage:
        """Return the known message with these bytes, or a new one."""
        key = msgspec.json.encode(message)
        entry = self._known.get(key)
        if entry is None:
            # From the bytes, because the owner of the message may change it later.
            entry = self._known[key] = SentMessage(msgspec.json.decode(key))
        return entry


class ViewReader:
    """Reads the views of one policy; unchanged objects that it returned before are recognised at once."""

    def __init__(self, library: SentMessages) -> None:
        self._library = library
        self._seen: dict[int, tuple[dict[str, Any], SentMessage]] = {}

    def read(self, view: Sequence[dict[str, Any]]) -> list[SentMessage]:
        """Return the messages of a view."""
        return [self._entry(message) for message in view]

    def _entry(self, message: dict[str, Any]) -> SentMessage:
        known = self._seen.get(id(message))
        # Comparing costs a tenth of encoding; the object is kept alive, so its id stays unique.
        if known is not None and known[1].message == message:
            return known[1]
        entry = self._library.of(message)
        self._seen[id(message)] = message, entry
        return entry


_NEWEST = 2
_RAREST = 3


class RequestNeeds(msgspec.Struct, frozen=True, kw_only=True):
    """One request, and what the answer to it used.

    `index` is the number of the answer: the request carries the messages before it. `needs` are
    facts, `lines` verbatim lines and `words` rare plain words that it used again; none of them is in
    the head or in the last two messages. `newest` are the results that it was the first to see.
    """

    index: int
    needs: tuple[str, ...]
    lines: tuple[str, ...]
    words: tuple[str, ...]
    newest: tuple[int, ...]


class Postings:
    """An inverted index: for each key the numbers of the messages that hold it, in order."""

    def __init__(self) -> None:
        self._at: dict[str, list[int]] = {}

    def add(self, keys: Iterable[str], number: int) -> None:
        """Add the keys that a message holds."""
        for key in keys:
            self._at.setdefault(key, []).append(number)

    def before(self, key: str, number: int) -> list[int]:
        """Return the messages before `number` that hold a key."""
        return [at for at in self._at.get(key, ()) if at < number]

    def __contains__(self, key: str) -> bool:
        return key in self._at


class Needs:
    """A run with its steps, and an index of its facts, lines and words."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.library = SentMessages()
        self.entries = [self.library.of(message) for message in run.messages]
        self.head = head_of(run.messages)
        self.facts, self.lines, self.words = Postings(), Postings(), Postings()
        self._windows: dict[tuple[str, Width], dict[str, int]] = {}
        self.steps = list(self._steps())
        """One for each assistant message after the first user message."""

    def is_original(self, fact: str, window: str, width: Width, index: int) -> bool:
        """Return whether a fact had these surroundings in a message before `index`."""
        first = self._windows.get((fact, width))
        if first is None:
            first = self._windows[fact, width] = {}
            for at in self.facts.before(fact, len(self.entries)):
                for each in self.entries[at].windows(fact, width):
                    first.setdefault(each, at)
        return first.get(window, index) < index

    def bare(self, index: int) -> list[SentMessage]:
        """Return what no policy can leave out before message `index`: the head and the last exchange.

        The last exchange is the last message before it that is no result, and everything after that.
        """
        start = index - 1
        while start > 0 and self._role(start) == "tool":
            start -= 1
        kept = {*(i for i in self.head if i < index), *range(start, index)}
        return [self.entries[i] for i in sorted(kept)]

    def _steps(self) -> Iterator[RequestNeeds]:
        asked = next((i for i in self.head if self._role(i) == "user"), 0)
        for index, entry in enumerate(self.entries):
            if self._role(index) == "assistant" and index > asked:
                yield self._step(index, entry)
            self.facts.add(entry.facts, index)
            self.lines.add(entry.lines, index)
            self.words.add(entry.words, index)

    def _step(self, index: int, answer: SentMessage) -> RequestNeeds:
        near = {*(i for i in self.head if i < index), *range(max(0, index - _NEWEST), index)}
        close = [self.entries[i] for i in near]
        return RequestNeeds(
            index=index,
            needs=_again(answer.facts, self.facts, [e.facts for e in close]),
            lines=_again(answer.lines, self.lines, [e.lines for e in close]),
            words=self._rare(_again(answer.words, self.words, [e.words for e in close]), index),
            newest=self._results(index),
        )

    def _rare(self, words: tuple[str, ...], index: int) -> tuple[str, ...]:
        return tuple(word for word in words if len(self.words.before(word, index)) <= _RAREST)

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
