"""The clairvoyant that moves lines: a result is shown once, then only what will be used of it."""

from __future__ import annotations

from collections.abc import Iterator

from ctxgc.lab.entries import AROUND
from ctxgc.lab.facts import tokens_in
from ctxgc.lab.oracle_message import STUB, Leave, MessageOracle, Oracle, Stub
from ctxgc.lab.policies import Policy, Task
from ctxgc.lab.weights import message_weight

LONGEST_LINE = 400


class LineOracle(MessageOracle):
    """Leaves the fewest lines that hold all facts which nothing else will show."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._lines: dict[tuple[int, frozenset[str]], Stub] = {}

    def stub(self, index: int, needed: dict[str, int]) -> Stub | None:
        """Return the lines that are needed, in their order."""
        key = index, frozenset(needed)
        if key not in self._lines:
            self._lines[key] = self._line_stub(*key) if needed else self._bare_stub(index)
        return self._lines[key]

    def _line_stub(self, index: int, needed: frozenset[str]) -> Stub:
        lines = cover(self._shown.messages[index]["content"], needed)
        message = self._shown.stub(index, "\n".join([STUB, *lines]))
        held = frozenset(fact for line in lines for fact in facts_of(line))
        return message, message_weight(message), held

    def ways(self) -> list[Leave]:
        """Return the ways in which a result may make room: down to what is needed, then wholly."""
        return [self._trim, self._mask]

    def _trim(self, unit: range) -> None:
        stub = self._offer(unit.start, {})
        if stub:
            self._apply({unit.start: stub})


def cover(text: str, needed: frozenset[str]) -> list[str]:
    """Return lines of a text that together hold the needed facts, few and short ones, in order.

    Of a line longer than 400 characters only the surroundings of a fact are taken.
    """
    pieces = [(piece, facts & needed) for piece, facts in _pieces(text, needed)]
    missing = {fact for _, facts in pieces for fact in facts}
    chosen: set[int] = set()
    while missing:
        gains = [len(facts & missing) / (len(piece) + 6) for piece, facts in pieces]
        best = max(range(len(pieces)), key=gains.__getitem__)
        chosen.add(best)
        missing -= pieces[best][1]
    return [pieces[number][0] for number in sorted(chosen)]


def facts_of(line: str) -> set[str]:
    """Return the facts in a line."""
    return {fact for (fact, _), _ in tokens_in(line) if fact}


def _pieces(text: str, needed: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for line in text.split("\n"):
        found = [(fact, start) for (fact, _), start in tokens_in(line) if fact in needed]
        if found and len(line) <= LONGEST_LINE:
            yield line, frozenset(fact for fact, _ in found)
        elif found:
            yield from (_around(line, fact, start) for fact, start in found)


def _around(line: str, fact: str, start: int) -> tuple[str, frozenset[str]]:
    first = max(0, start - AROUND - 1)
    return line[first : start + len(fact) + AROUND + 1], frozenset({fact})


def oracle() -> Policy:
    """Return the clairvoyant that moves lines."""
    return Oracle("oracle-line", LineOracle)
