"""Analysis: what is reachable and what everything is worth, before anything is decided."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import msgspec

from ctxgc.core.links import bond_of, keys_of
from ctxgc.core.mark import Marks, mark, mark_young
from ctxgc.core.options import EngineOptions, Scope, in_scope
from ctxgc.core.roots import GCState, RootSet, compute_roots
from ctxgc.core.score import Explanation, KeepScore, ScoreContext
from ctxgc.core.segment import ContextSegment, explicit_references


class Hop(msgspec.Struct, frozen=True):
    """One link of a reason chain: a segment and how it was reached."""

    segment_id: str
    via: str


class _Ranked(NamedTuple):
    """Segments with their scores, lowest first, then oldest."""

    segments: list[ContextSegment]
    scores: list[float]


class Analysis:
    """Roots, marks and scores of one heap at one moment.

    What no root reaches is scored and sorted on demand, and so, separately, is the reachable:
    most collections find garbage enough, and those of a window ask for marks alone.
    """

    def __init__(
        self,
        state: GCState,
        scope: Scope,
        *,
        roots: RootSet,
        marks: Marks,
        scorer: KeepScore,
        context: Callable[[], ScoreContext],
    ) -> None:
        self.state = state
        self.scope = scope
        self.roots = roots
        self.marks = marks
        self.scorer = scorer
        self._context = context
        self._in_scope = in_scope(state.heap, scope)

    @cached_property
    def context(self) -> ScoreContext:
        """What scores depend on besides the segments."""
        return self._context()

    @property
    def garbage(self) -> list[ContextSegment]:
        """What no root reaches in the order in which it would leave: the superseded first."""
        return self._ranked_garbage.segments

    @property
    def garbage_scores(self) -> list[float]:
        """The scores of the garbage, in its order."""
        return self._ranked_garbage.scores

    @cached_property
    def _ranked_garbage(self) -> _Ranked:
        stale, fresh = self._loose()
        first, then = self._by_score(stale), self._by_score(fresh)
        # To copy a list is to fetch all that is in it.
        if not first.segments:
            return then
        return _Ranked(first.segments + then.segments, first.scores + then.scores)

    @cached_property
    def live(self) -> list[ContextSegment]:
        """The reachable segments that are not roots, lowest score first, then oldest."""
        return self._ranked_live.segments

    @property
    def order(self) -> list[ContextSegment]:
        """The segments that are not roots, in the order in which they would leave."""
        return [*self.garbage, *self.live]

    @cached_property
    def scores(self) -> dict[str, float]:
        """The keep_score of every segment that is not a root."""
        ranked = self._ranked_live
        return self._garbage_scores | _by_id(ranked.segments, ranked.scores)

    def score(self, segment_id: str) -> float:
        """Return the keep_score of a segment that may leave."""
        known = self._garbage_scores.get(segment_id)
        return self.scores[segment_id] if known is None else known

    def may_leave(self, segment_id: str) -> bool:
        """Return whether a segment is within the scope and no root."""
        segment = self.state.heap.peek(segment_id)
        if segment is None or segment.tier != "working" or segment_id in self.roots:
            return False
        index = self.state.heap.index
        return self.scope != "minor" or segment_id in index.young or segment_id in index.touched_old

    def cold(
        self, is_cold: Callable[[ContextSegment], bool], min_tokens: int
    ) -> list[ContextSegment]:
        """Return the reachable segments of this size for which this is true, lowest score first."""
        large = [s for s in self._in_scope if (s.tokens or 0) >= min_tokens]
        found = [s for s in large if self._is_spared(s) and is_cold(s)]
        if not found:
            return []
        return sorted(found, key=lambda segment: self.score(segment.segment_id))

    def is_live(self, segment: ContextSegment) -> bool:
        """Return whether a segment counts as reachable: marked, or old in a minor collection."""
        if self.scope == "minor" and segment.generation == "old":
            return True
        return segment.segment_id in self.marks.came_from

    def _is_spared(self, segment: ContextSegment) -> bool:
        """Return whether a segment is reachable without being a root."""
        return self.is_live(segment) and segment.segment_id not in self.roots

    def _loose(self) -> tuple[list[ContextSegment], list[ContextSegment]]:
        """Return what no root reaches in order of arrival, the superseded apart from the others."""
        # Asked a million times, a set answers in half the time of the dict with the ways.
        reached = frozenset(self.marks.came_from)
        loose = [s for s in self._in_scope if s.segment_id not in reached]
        if self.scope != "major":
            loose = [s for s in loose if s.generation == "young"]
        stale = [s for s in loose if s.superseded_by is not None]
        return stale, [s for s in loose if s.superseded_by is None] if stale else loose

    @cached_property
    def _ranked_live(self) -> _Ranked:
        return self._by_score([s for s in self._in_scope if self._is_spared(s)])

    @cached_property
    def _garbage_scores(self) -> dict[str, float]:
        return _by_id(self.garbage, self.garbage_scores)

    def _by_score(self, segments: list[ContextSegment]) -> _Ranked:
        values = _levelled(segments, self.scorer.all(segments, self.context))
        order = sorted(range(len(segments)), key=values.__getitem__)
        return _Ranked([segments[n] for n in order], [values[n] for n in order])

    def is_reachable(self, segment_id: str) -> bool:
        """Return whether the roots reach a segment."""
        return segment_id in self.marks

    def chain(self, segment_id: str) -> tuple[Hop, ...]:
        """Return why a segment is reachable: the root with its reason, then link by link."""
        ids = self.marks.chain(segment_id)
        if not ids:
            return ()
        hops = [Hop(ids[0], ", ".join(self.roots.why(ids[0])) or "live old segment")]
        hops.extend(Hop(to, self._via(at, to)) for at, to in pairwise(ids))
        return tuple(hops)

    def explain(self, segment_id: str) -> Explanation:
        """Return the terms of a segment's score."""
        return self.scorer.explain(self.state.heap.get(segment_id), self.context)

    def _via(self, source: str, target: str) -> str:
        heap = self.state.heap
        a, b = heap.get(source), heap.get(target)
        named = explicit_references(a).get(target)
        if named is not None:
            return named
        if bond_of(a) is not None and bond_of(a) == bond_of(b):
            return "bond"
        shared = {key[:2] for key in keys_of(a)} & {key[:2] for key in keys_of(b)}
        kind, value = min(shared)
        return f"same {kind} {value}"


def analyze(state: GCState, options: EngineOptions, scope: Scope = "major") -> Analysis:
    """Find roots and what they reach, score the rest, and put it in the order of leaving."""
    heap, roots = state.heap, compute_roots(state)
    marker = mark if scope == "major" else mark_young
    marks = marker(heap, roots, options.strong)
    scorer = KeepScore(options.profile, options.weights)

    def context() -> ScoreContext:
        return ScoreContext(
            now=state.now,
            step=heap.step,
            current_task_id=state.current_task_id,
            task_dependencies=state.task_dependencies,
            soft=heap.mentions.soft_weights({r: heap.get(r).text for r in roots}),
        )

    return Analysis(state, scope, roots=roots, marks=marks, scorer=scorer, context=context)


def _by_id(segments: list[ContextSegment], scores: list[float]) -> dict[str, float]:
    return dict(zip([segment.segment_id for segment in segments], scores, strict=True))


def _levelled(segments: list[ContextSegment], scores: list[float]) -> list[float]:
    """Return the scores with every member of a bond at that of its most valuable one."""
    bonds = [s.call_id if s.bond_id is None else s.bond_id for s in segments]
    best: dict[str | None, float] = {}
    for bond, score in zip(bonds, scores, strict=True):
        known = best.get(bond)
        if known is None or score > known:
            best[bond] = score
    return [s if b is None else best[b] for b, s in zip(bonds, scores, strict=True)]
