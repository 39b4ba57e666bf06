"""Checks of each request: is it one that its provider takes, does it fit, what was held back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from ctxgc.lab.entries import Entry
from ctxgc.lab.needs import Needs, Step
from ctxgc.lab.residency import Residency
from ctxgc.testing import check_history


class Validity:
    """Counts the requests whose history a provider would refuse, by the rule that they break.

    Rules that the recorded run itself breaks are not held against a policy.
    """

    def __init__(self, needs: Needs) -> None:
        self.refused = 0
        self.rules: Counter[str] = Counter()
        self._needs = needs
        self._broken: frozenset[str] = frozenset()
        self._read = 0

    def check(self, view: Sequence[Entry], same: int, before: int, index: int) -> None:
        """Check the view that message `index` answers; `before` messages were in the last one.

        When all that was sent last is sent again, and behind it what has come in since, the verdict
        on the last view stands: new messages of a valid run do not break an old one.
        """
        fresh = self._needs.entries[self._read : index]
        grown = same == before and list(view[same:]) == fresh
        self._read = index
        if not grown or not before:
            self._broken = _breaches([e.message for e in view]) - self._own
        self.refused += bool(self._broken)
        self.rules.update(self._broken)

    @cached_property
    def _own(self) -> frozenset[str]:
        return _breaches(self._needs.run.messages)


def _breaches(messages: list[dict[str, object]]) -> frozenset[str]:
    return frozenset(breach.rule for breach in check_history(messages, complete=False))


def last_unit_tokens(needs: Needs, index: int) -> int:
    """Return the tokens of what no policy can do without: the head, and the last exchange.

    That is the last assistant message before `index` with all that follows it.
    """
    entries = needs.entries
    start = index - 1
    while start > 0 and entries[start].message.get("role") == "tool":
        start -= 1
    wanted = {*(i for i in needs.head if i < index), *range(start, index)}
    return sum(entries[i].tokens for i in wanted)


def newest_facts(needs: Needs, step: Step, view: Residency) -> tuple[int, int]:
    """Return how many facts the newest results hold, and how many of them the view shows.

    They are needed by nobody yet, so an admission cut would look free without this.
    """
    whole = shown = 0
    for number in step.newest:
        facts = needs.entries[number].facts
        whole += len(facts)
        if view.stands(number):
            shown += len(facts)
        else:
            shown += sum(view.holds_fact(fact, step.index) for fact in facts)
    return whole, shown
