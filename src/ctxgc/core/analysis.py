"""Analysis: what is reachable and what everything is worth, before anything is decided."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise

import msgspec

from ctxgc.core.bonds import bond_of
from ctxgc.core.generations import Scope, in_scope
from ctxgc.core.keys import keys_of
from ctxgc.core.mark import Marks, mark, mark_young
from ctxgc.core.options import EngineOptions
from ctxgc.core.roots import GCState, RootSet, compute_roots
from ctxgc.core.score import Explanation, KeepScore, ScoreContext
from ctxgc.core.segment import ContextSegment, explicit_references


class Hop(msgspec.Struct, frozen=True):
    """One link of a reason chain: a segment and how it was reached."""

    segment_id: str
    via: str


class Analysis:
    """Roots, marks and scores of one heap at one moment.

    What no root reaches is scored and sorted at once; the reachable only when somebody asks, since most
    collections find garbage enough.
    """

    def __init__(
        self,
        state: GCState,
        scope: Scope,
        *,
        roots: RootSet,
        marks: Marks,
        scorer: KeepScore,
        context: ScoreContext,
    ) -> None:
        self.state = state
        self.scope = scope
        self.roots = roots
        self.marks = marks
        self.scorer = scorer
        self.context = context
        self._scores: dict[str, float] = {}
        self._live, superseded, other = _sorted_out(self)
        self.garbage = [*self._by_score(superseded), *self._by_score(other)]

    @cached_property
    def live(self) -> list[ContextSegment]:
        """The reachable segments that are no roots, lowest score first, then oldest."""
        return self._by_score(self._live)

    @property
    def order(self) -> list[ContextSegment]:
        """The segments that are no roots in the order in which they would leave."""
        return [*self.garbage, *self.live]

    @property
    def scores(self) -> dict[str, float]:
        """The keep_score of every segment that is no root."""
        _ = self.live  # asking for them is what scores them
        return self._scores

    def score(self, segment_id: str) -> float:
        """Return the keep_score of a segment that may leave."""
        known = self._scores.get(segment_id)
        return self.scores[segment_id] if known is None else known

    def may_leave(self, segment_id: str) -> bool:
        """Tell whether a segment is within the scope and no root."""
        segment = self.state.heap.peek(segment_id)
        if segment is None or segment.tier != "working" or segment_id in self.roots:
            return False
        index = self.state.heap.index
        return self.scope != "minor" or segment_id in index.young or segment_id in index.touched_old

    def cold(self, is_cold: Callable[[ContextSegment], bool]) -> list[ContextSegment]:
        """Return the reachable segments for which this is true, lowest score first."""
        found = [segment for segment in self._live if is_cold(segment)]
        if not found:
            return []
        return sorted(found, key=lambda segment: self.score(segment.segment_id))

    def is_live(self, segment: ContextSegment) -> bool:
        """Tell whether a segment counts as reachable: marked, or old in a minor collection."""
        if self.scope == "minor" and segment.generation == "old":
            return True
        return segment.segment_id in self.marks.came_from

    def _by_score(self, segments: list[ContextSegment]) -> list[ContextSegment]:
        values = self.scorer.all(segments, self.context)
        _level_bonds(segments, values)
        self._scores.update(zip([s.segment_id for s in segments], values, strict=True))
        return [segments[n] for n in sorted(range(len(segments)), key=values.__getitem__)]

    def is_reachable(self, segment_id: str) -> bool:
        """Tell whether the roots reach a segment."""
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
    roots = compute_roots(state)
    marker = mark if scope == "major" else mark_young
    marks = marker(state.heap, roots, options.strong)
    scorer = KeepScore(options.profile, options.weights)
    context = ScoreContext(
        now=state.now,
        step=state.heap.step,
        current_task_id=state.current_task_id,
        task_dependencies=state.task_dependencies,
        soft=state.heap.mentions.soft_weights(roots),
    )
    return Analysis(state, scope, roots=roots, marks=marks, scorer=scorer, context=context)


def _sorted_out(analysis: Analysis) -> tuple[list[ContextSegment], ...]:
    """Return what may leave, in order of arrival: the live, the superseded and the other garbage."""
    live: list[ContextSegment] = []
    superseded: list[ContextSegment] = []
    garbage: list[ContextSegment] = []
    roots, is_live = analysis.roots, analysis.is_live
    for segment in in_scope(analysis.state.heap, analysis.scope):
        if segment.segment_id in roots:
            continue
        if is_live(segment):
            live.append(segment)
        elif segment.superseded_by is None:
            garbage.append(segment)
        else:
            superseded.append(segment)
    return live, superseded, garbage


def _level_bonds(segments: list[ContextSegment], scores: list[float]) -> None:
    """Give every member of a bond the score of its most valuable one: they leave together."""
    bonds = [bond_of(segment) for segment in segments]
    best: dict[str, float] = {}
    for bond, score in zip(bonds, scores, strict=True):
        if bond is not None and score > best.get(bond, -math.inf):
            best[bond] = score
    for place, bond in enumerate(bonds):
        if bond is not None:
            scores[place] = best[bond]
