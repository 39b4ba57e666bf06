"""What an oracle knows: which facts will be used again, when, and which messages still show them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from ctxgc.lab.needs import Needs
from ctxgc.lab.runs import Run

Kept = Mapping[int, frozenset[str]]

_NONE: Kept = {}
_last: list[tuple[Run, Needs]] = []


class Future:
    """The needs of a whole run, and what of its messages is shown now."""

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
        """Return how many requests are still to come, the one before message `index` included."""
        return len(self._answers) - bisect_left(self._answers, index)

    def only_here(self, message: int, index: int, planned: Kept = _NONE) -> dict[str, int]:
        """Return the facts that answers from `index` on will miss if a message shows nothing more.

        Each comes with the number of those answers. `planned` says what other messages will be left
        with, on top of what has already left them.
        """
        missed = {}
        for fact in self._wanted[message]:
            steps = self._needed[fact]
            first = bisect_left(steps, index)
            if first < len(steps) and not self._elsewhere(fact, message, steps[first], planned):
                missed[fact] = len(steps) - first
        return missed

    def keep(self, kept: Kept) -> None:
        """Note that messages show nothing but these facts from now on."""
        self._kept.update(kept)

    def _elsewhere(self, fact: str, message: int, step: int, planned: Kept) -> bool:
        """Tell whether another message shows a fact when it is needed, come already or not."""
        return any(
            holder != message and self._shows(holder, fact, planned)
            for holder in self._holders[fact]
            if holder < step
        )

    def _shows(self, message: int, fact: str, planned: Kept) -> bool:
        kept = planned.get(message)
        if kept is None:
            kept = self._kept.get(message)
        return kept is None or fact in kept


def _read(run: Run) -> Needs:
    """Return the needs of a run; the last one is remembered, since several oracles play it in turn."""
    if not _last or _last[0][0] is not run:
        _last[:] = [(run, Needs(run))]
    return _last[0][1]
