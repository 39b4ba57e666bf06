"""The clairvoyant that moves whole results: what will not be used again leaves, when that pays.

In COST a result with no future need is replaced by a stub as soon as break-even, with the true number
of requests left, says so. In WINDOW the results with the fewest future needs per token go first. It is
greedy: a strong reference, not a proven optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from ctxgc._version import __version__
from ctxgc.economics import break_even
from ctxgc.lab.oracle_future import Future, Kept
from ctxgc.lab.policies import Kind, Player, Policy, Task
from ctxgc.lab.shown import Json, Shown
from ctxgc.lab.weights import message_weight

START_SHARE = 0.8
TARGET_SHARE = 0.6
STUB = "[omitted]"

Stub = tuple[Json, int, frozenset[str]]
"""A message in place of a result, its tokens, and the facts that it still shows."""

Leave = Callable[[range], None]
"""How a unit makes room."""


class MessageOracle:
    """Knows all future needs, and plays one run."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._shown = Shown()
        self._future = Future(task.run)
        self._collections = 0
        self._bare: dict[int, Stub] = {}

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

    def is_recallable(self, index: int) -> bool:  # noqa: ARG002 - it has no need of handles
        """Tell that no handle is shown."""
        return False

    def counts(self) -> dict[str, float]:
        """Return the number of collections."""
        return {"collections": self._collections}

    # -- COST -------------------------------------------------------------------------------------

    def _save(self) -> None:
        """Make the edit that pays most, if one pays: all that can leave from some message on."""
        shown, now = self._shown, len(self._shown.messages)
        left = self._future.requests_left(now)
        plan: dict[int, Stub] = {}
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

    def _offer(self, index: int, planned: Kept) -> Stub | None:
        """Return what could stand for a message from now on, if anything shorter can."""
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

    def stub(self, index: int, needed: dict[str, int]) -> Stub | None:
        """Return what may stand for a result that alone shows the needed facts."""
        return None if needed else self._bare_stub(index)

    def _bare_stub(self, index: int) -> Stub:
        if index not in self._bare:
            message = self._shown.stub(index, STUB)
            self._bare[index] = message, message_weight(message), frozenset()
        return self._bare[index]

    def _apply(self, stubs: dict[int, Stub]) -> None:
        self._shown.replace({index: stub[0] for index, stub in stubs.items()})
        self._future.keep({index: stub[2] for index, stub in stubs.items()})

    # -- WINDOW -----------------------------------------------------------------------------------

    def _shrink(self, target: int) -> None:
        """Make room: results first, those with the fewest future needs per token, then whole units."""
        shown = self._shown
        for leave in self.ways():
            if shown.size > START_SHARE * self._task.limit:
                results = [range(i, i + 1) for i in shown.results if i < shown.sent]
                self._drain([u for u in results if not shown.is_dropped(u.start)], target, leave)
        if shown.size > START_SHARE * self._task.limit:
            units = [unit for unit in shown.droppable() if unit.stop <= shown.sent]
            self._drain(units, target, self._drop)

    def ways(self) -> list[Leave]:
        """Return the ways in which a result may make room, the kindest first."""
        return [self._mask]

    def _drain(self, units: list[range], target: int, leave: Leave) -> None:
        """Let units leave, cheapest first, until the view has at most `target` tokens."""
        queue = [(self._density(unit), unit.start, unit) for unit in units]
        heapify(queue)
        while queue and self._shown.size > target:
            known, start, unit = heappop(queue)
            density = self._density(unit)
            if density > known:  # what left before made this one more precious
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

    def open(self, task: Task) -> Player:
        """Begin a run, knowing its end."""
        return self._player(task)


def oracle() -> Policy:
    """Return the clairvoyant that moves whole results."""
    return Oracle("oracle-message", MessageOracle)
