"""A naive checker of plans: what a plan promises, tested from the outside."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

import msgspec

from ctxgc.core import ContextSegment, PruningCandidate, PruningPlan
from tests.properties import naive_engine

Unit = frozenset[str]


class Judge(msgspec.Struct, frozen=True):
    """What the checker knows: the heap's segments, the roots, what they reach, what is looked at."""

    segments: Mapping[str, ContextSegment]
    roots: Collection[str]
    reached: Collection[str]
    scope: Collection[str]

    @classmethod
    def major(
        cls, segments: Sequence[ContextSegment], roots: Collection[str], strong: Sequence[str]
    ) -> Judge:
        """Return the judge of a major plan."""
        by_id = {segment.segment_id: segment for segment in segments}
        reached = naive_engine.reachable(segments, roots, strong=strong)
        return cls(by_id, roots, reached, [s.segment_id for s in segments if s.tier == "working"])

    @classmethod
    def minor(
        cls,
        segments: Sequence[ContextSegment],
        roots: Collection[str],
        strong: Sequence[str],
        touched: Collection[str],
    ) -> Judge:
        """Return the judge of a minor plan, which looks at the young and at the old just touched."""
        by_id = {segment.segment_id: segment for segment in segments}
        working = [s for s in segments if s.tier == "working"]
        reached = naive_engine.reachable_young(segments, roots, strong=strong)
        reached |= {s.segment_id for s in working if s.generation == "old"}
        young = {s.segment_id for s in working if s.generation == "young"}
        return cls(by_id, roots, reached, young | set(touched))

    def unit(self, segment_id: str) -> Unit:
        """Return the working segments that leave together with this one."""
        mine = self.segments[segment_id]
        partners = (s for s in self.segments.values() if naive_engine.bonded(mine, s))
        return frozenset({segment_id, *(s.segment_id for s in partners if s.tier == "working")})

    def may_leave(self) -> set[str]:
        """Return what may leave whole: looked at, no root, and so is everything bonded to it."""
        free = {s for s in self.scope if s not in self.roots}
        return {segment_id for segment_id in free if self.unit(segment_id) <= free}

    def garbage(self) -> set[str]:
        """Return what may leave and is not reached."""
        return {s for s in self.may_leave() if self.unit(s).isdisjoint(self.reached)}

    def outlived(self) -> set[str]:
        """Return the superseded results that are not reached, in bonds of which something is."""
        return {
            s
            for s in self.scope
            if s not in self.roots
            and s not in self.reached
            and not self.unit(s).isdisjoint(self.reached)
        }

    def tokens(self, ids: Collection[str]) -> int:
        """Return the tokens of segments."""
        return sum(naive_engine.tokens_of(self.segments[segment_id]) for segment_id in ids)


def check_plan(plan: PruningPlan, judge: Judge, need: int | None) -> None:
    """Assert everything that a plan of this need promises."""
    _check_books(plan, need)
    _check_safety(plan, judge)
    if need is None:
        _check_all_garbage(plan, judge)
    else:
        _check_need(plan, judge, need)


LARGEST_STUB = 120
"""No stub without lines of its text has more tokens."""


def _check_all_garbage(plan: PruningPlan, judge: Judge) -> None:
    """All that no root reaches leaves, but for results that are hardly larger than a stub."""
    left = {c.segment_id for c in plan.candidates}
    shrunk = set(plan.evacuate_segments)
    assert left - shrunk == judge.garbage()
    assert shrunk <= judge.outlived()
    assert all(judge.tokens([s]) < 2 * LARGEST_STUB for s in judge.outlived() - shrunk)


def _check_books(plan: PruningPlan, need: int | None) -> None:
    ids = [candidate.segment_id for candidate in plan.candidates]
    assert len(set(ids)) == len(ids)
    groups = {
        "stash": plan.stash_segments, "delete": plan.delete_segments,
        "evacuate": plan.evacuate_segments, "compress": plan.compress_segments,
    }  # fmt: skip
    for action, members in groups.items():
        assert members == [c.segment_id for c in plan.candidates if c.action == action]
    assert sorted(plan.stubs) == sorted([*plan.evacuate_segments, *plan.compress_segments])
    assert plan.total_tokens_freed == sum(candidate.freed for candidate in plan.candidates)
    assert plan.shortfall == max(0, (need or 0) - plan.total_tokens_freed)
    assert plan.tokens_after == plan.tokens_before - plan.total_tokens_freed
    assert all(0 <= c.freed <= c.tokens and c.reason for c in plan.candidates)
    check_order(plan.candidates)


def check_order(candidates: Sequence[PruningCandidate]) -> None:
    """Assert that bonds leave in the order of class and lowest score: garbage first."""
    keys = [
        min((c.reachable, not c.superseded, c.score) for c in unit) for unit in _units(candidates)
    ]
    assert all(a <= b for a, b in pairwise(keys))


def _units(candidates: Sequence[PruningCandidate]) -> Iterator[list[PruningCandidate]]:
    for _, unit in groupby(candidates, key=lambda c: c.bond or (c.segment_id,)):
        yield list(unit)


def _check_safety(plan: PruningPlan, judge: Judge) -> None:
    whole = {*plan.stash_segments, *plan.delete_segments}
    shrunk = {*plan.evacuate_segments, *plan.compress_segments}
    assert whole | shrunk <= set(judge.scope)
    assert (whole | shrunk).isdisjoint(judge.roots)
    assert all(judge.unit(segment_id) <= whole for segment_id in whole)
    assert shrunk <= judge.outlived() | set(judge.reached)
    assert set(plan.delete_segments).isdisjoint(judge.reached)
    for candidate in (*plan.candidates, *plan.proposals):
        segment = judge.segments[candidate.segment_id]
        assert candidate.reachable == (candidate.segment_id in judge.reached)
        assert candidate.tokens == naive_engine.tokens_of(segment)
        assert not segment.pinned


def _check_need(plan: PruningPlan, judge: Judge, need: int) -> None:
    whole = {*plan.stash_segments, *plan.delete_segments}
    garbage, live = judge.garbage(), {c.segment_id for c in plan.candidates if c.reachable}
    if need == 0:
        assert plan.candidates == []
    if live:
        assert judge.tokens(garbage) < need
        assert garbage <= whole
        small = judge.outlived() - whole - set(plan.evacuate_segments)
        assert all(judge.tokens([s]) < 2 * LARGEST_STUB for s in small)
    if plan.shortfall:
        assert judge.tokens(whole) == judge.tokens(judge.may_leave())
    else:
        _check_frugal(plan, judge, plan.total_tokens_freed - need, live)


def _check_frugal(plan: PruningPlan, judge: Judge, surplus: int, live: set[str]) -> None:
    """No unit of the most valuable class in a plan could stay with the target still met."""
    freed = {candidate.segment_id: candidate.freed for candidate in plan.candidates}
    whole = {*plan.stash_segments, *plan.delete_segments}
    for segment_id in live or freed:
        unit = judge.unit(segment_id) if segment_id in whole else {segment_id}
        size = sum(freed[member] for member in unit)
        assert size > surplus or (size == 0 and segment_id not in live)
