"""Oracles: policies that know what will be used, as a bound for those that do not.

The message oracle removes whole results that will not be used again, when that pays. The line oracle
shows a result once, then only the lines of it that will be used.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from heapq import heapify, heappop, heappush

from ctxgc._version import __version__
from ctxgc.economics import break_even
from ctxgc.lab.facts import message_weight, tokens_in
from ctxgc.lab.needs import AROUND, Needs
from ctxgc.lab.policies import Kind, Player, Policy, PolicyTask
from ctxgc.lab.runs import Run
from ctxgc.lab.view import Json, LabView

_Kept = Mapping[int, frozenset[str]]

_NONE: _Kept = {}
_last: list[tuple[Run, Needs]] = []


class _FutureNeeds:
    """The needs of a whole run, and what its messages show now."""

    def __init__(self, run: Run) -> None:
        needs = _read(run)
        self._answers = [step.index for step in needs.steps]
        self._needed: dict[str, list[int]] = {}
        for step in needs.steps:
            for fact in step.needs:
                self._needed.setdefault(fact, []).append(step.index)
        self._holders = {
            fact: needs.facts.before(fact, len(needs.entries)) for fact in self._needed
        }
        self._wanted = [sorted(entry.facts.keys() & self._needed.keys()) for entry in needs.entries]
        self._kept: dict[int, frozenset[str]] = {}

    def requests_left(self, index: int) -> int:
        """Return how many requests are still to come, including the one before message `index`."""
        return len(self._answers) - bisect_left(self._answers, index)

    def only_here(self, message: int, index: int, planned: _Kept = _NONE) -> dict[str, int]:
        """Return the facts that answers from `index` on will miss if a message shows nothing any more.

        Each comes with the number of those answers. `planned` says what other messages will still
        show, in addition to what they have already lost.
        """
        missed = {}
        for fact in self._wanted[message]:
            steps = self._needed[fact]
            first = bisect_left(steps, index)
            if first < len(steps) and not self._elsewhere(fact, message, steps[first], planned):
                missed[fact] = len(steps) - first
        return missed

    def keep(self, kept: _Kept) -> None:
        """Note that messages show only these facts from now on."""
        self._kept.update(kept)

    def _elsewhere(self, fact: str, message: int, step: int, planned: _Kept) -> bool:
        """Return whether another message, past or future, shows a fact when it is needed."""
        return any(
            holder != message and self._shows(holder, fact, planned)
            for holder in self._holders[fact]
            if holder < step
        )

    def _shows(self, message: int, fact: str, planned: _Kept) -> bool:
        kept = planned.get(message)
        if kept is None:
            kept = self._kept.get(message)
        return kept is None or fact in kept


def _read(run: Run) -> Needs:
    """Return the needs of a run; the last run is cached, because several oracles play it in turn."""
    if not _last or _last[0][0] is not run:
        _last[:] = [(run, Needs(run))]
    return _last[0][1]


# -- The message oracle


START_SHARE = 0.8
TARGET_SHARE = 0.6
STUB = "[omitted]"

_Stub = tuple[Json, int, frozenset[str]]
"""A message that replaces a result, its tokens, and the facts that it still shows."""

_Leave = Callable[[range], None]
"""A way to remove a unit."""


class MessageOracle:
    """Plays one run, knowing all future needs."""

    def __init__(self, task: PolicyTask) -> None:
        self._task = task
        self._shown = LabView()
        self._future = _FutureNeeds(task.run)
        self._collections = 0
        self._bare: dict[int, _Stub] = {}

    def view(self, history: list[Json]) -> list[Json]:
        """Return what is sent."""
        self._shown.take(history)
        before = self._shown.edits
        if self._task.regime == "cost":
            self._save()
        elif self._shown.size > START_SHARE * self._task.limit:
            self._shrink(int(TARGET_SHARE * self._task.limit))
        self._collections += self._shown.edits > before
        return self._shown.view()

    def is_recallable(self, index: int) -> bool:  # noqa: ARG002 - it needs no handles
        """Return False: no handle is shown."""
        return False

    def counts(self) -> dict[str, float]:
        """Return the number of collections."""
        return {"collections": self._collections}

    def _save(self) -> None:
        """In COST: make the edit that pays most, if any does: all that can leave from some message on."""
        shown, now = self._shown, len(self._shown.messages)
        left = self._future.requests_left(now)
        plan: dict[int, _Stub] = {}
        planned: dict[int, frozenset[str]] = {}
        best, first, removed, rewritten = 0.0, now, 0, 0
        for index in range(shown.sent - 1, shown.head - 1, -1):
            stub = self._offer(index, planned)
            rewritten += stub[1] if stub else shown.weights[index]
            if stub is None:
                continue
            plan[index], planned[index] = stub, stub[2]
            removed += shown.weights[index] - stub[1]
            gain = break_even(left, removed, rewritten, self._task.sheet)
            if gain > best:
                best, first = gain, index
        self._apply({index: stub for index, stub in plan.items() if index >= first})

    def _offer(self, index: int, planned: _Kept) -> _Stub | None:
        """Return the shorter message that could replace a message from now on, if there is one."""
        if not self._is_candidate(index):
            return None
        needed = self._future.only_here(index, len(self._shown.messages), planned)
        stub = self.stub(index, needed)
        return stub if stub and stub[1] < self._shown.weights[index] else None

    def _is_candidate(self, index: int) -> bool:
        message = self._shown.messages[index]
        return (
            message["role"] == "tool"
            and isinstance(message.get("content"), str)
            and self._shown.is_whole(index)
        )

    def stub(self, index: int, needed: dict[str, int]) -> _Stub | None:
        """Return what may replace a result that alone shows the needed facts."""
        return None if needed else self._bare_stub(index)

    def _bare_stub(self, index: int) -> _Stub:
        if index not in self._bare:
            message = self._shown.stub(index, STUB)
            self._bare[index] = message, message_weight(message), frozenset()
        return self._bare[index]

    def _apply(self, stubs: dict[int, _Stub]) -> None:
        self._shown.replace({index: stub[0] for index, stub in stubs.items()})
        self._future.keep({index: stub[2] for index, stub in stubs.items()})

    def _shrink(self, target: int) -> None:
        """In WINDOW: make room with the results of fewest future needs per token, then with units."""
        shown = self._shown
        for leave in self.ways():
            if shown.size > START_SHARE * self._task.limit:
                results = [range(i, i + 1) for i in shown.results if i < shown.sent]
                self._drain([u for u in results if not shown.is_dropped(u.start)], target, leave)
        if shown.size > START_SHARE * self._task.limit:
            units = [unit for unit in shown.droppable() if unit.stop <= shown.sent]
            self._drain(units, target, self._drop)

    def ways(self) -> list[_Leave]:
        """Return the ways to shorten a result, the mildest first."""
        return [self._mask]

    def _drain(self, units: list[range], target: int, leave: _Leave) -> None:
        """Remove units, cheapest first, until the view has at most `target` tokens."""
        queue = [(self._density(unit), unit.start, unit) for unit in units]
        heapify(queue)
        while queue and self._shown.size > target:
            known, start, unit = heappop(queue)
            density = self._density(unit)
            if density > known:  # what left before made this one more valuable
                heappush(queue, (density, start, unit))
            else:
                leave(unit)

    def _mask(self, unit: range) -> None:
        stub = self._bare_stub(unit.start)
        if stub[1] < self._shown.weights[unit.start]:
            self._apply({unit.start: stub})

    def _drop(self, unit: range) -> None:
        self._future.keep(dict.fromkeys(unit, frozenset()))
        self._shown.drop([unit])

    def _density(self, unit: range) -> float:
        """Return the future needs per token that only this unit can serve."""
        now = len(self._shown.messages)
        together = {index: frozenset[str]() for index in unit}
        missed: dict[str, int] = {}
        for index in unit:
            missed |= self._future.only_here(index, now, together)
        return sum(missed.values()) / max(1, sum(self._shown.weights[index] for index in unit))


class Oracle:
    """An oracle as a policy."""

    kind: Kind = "oracle"
    version = __version__

    def __init__(self, name: str, player: type[MessageOracle]) -> None:
        self.name = name
        self._player = player

    @property
    def settings(self) -> Json:
        """When it makes room in WINDOW, and how much."""
        return {"start": START_SHARE, "to": TARGET_SHARE}

    def open(self, task: PolicyTask) -> Player:
        """Begin a run, knowing its end."""
        return self._player(task)


def message_oracle() -> Policy:
    """Return the oracle that removes whole results."""
    return Oracle("oracle-message", MessageOracle)


# -- The line oracle


LONGEST_LINE = 400


class LineOracle(MessageOracle):
    """Keeps the fewest lines that hold all facts which no other message will show."""

    def __init__(self, task: PolicyTask) -> None:
        super().__init__(task)
        self._lines: dict[tuple[int, frozenset[str]], _Stub] = {}

    def stub(self, index: int, needed: dict[str, int]) -> _Stub | None:
        """Return the needed lines, in their order."""
        key = index, frozenset(needed)
        if key not in self._lines:
            self._lines[key] = self._line_stub(*key) if needed else self._bare_stub(index)
        return self._lines[key]

    def _line_stub(self, index: int, needed: frozenset[str]) -> _Stub:
        lines = cover(self._shown.messages[index]["content"], needed)
        message = self._shown.stub(index, "\n".join([STUB, *lines]))
        held = frozenset(fact for line in lines for fact in facts_of(line))
        return message, message_weight(message), held

    def ways(self) -> list[_Leave]:
        """Return the ways to shorten a result: down to what is needed, then completely."""
        return [self._trim, self._mask]

    def _trim(self, unit: range) -> None:
        stub = self._offer(unit.start, {})
        if stub:
            self._apply({unit.start: stub})


def cover(text: str, needed: frozenset[str]) -> list[str]:
    """Return few and short lines of a text that together hold the needed facts, in order.

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


def line_oracle() -> Policy:
    """Return the oracle that removes lines."""
    return Oracle("oracle-line", LineOracle)
