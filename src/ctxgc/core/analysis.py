"""Analysis: what is reachable and what everything is worth, before anything is decided."""

from __future__ import annotations

import math
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


class Analysis(msgspec.Struct, frozen=True):
    """Roots, marks and scores of one heap at one moment.

    `order` lists the segments that are no roots in the order in which they would leave.
    """

    state: GCState
    scope: Scope
    roots: RootSet
    marks: Marks
    scores: dict[str, float]
    order: list[ContextSegment]
    scorer: KeepScore
    context: ScoreContext

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
    segments = [s for s in in_scope(state.heap, scope) if s.segment_id not in roots]
    values = scorer.all(segments, context)
    _level_bonds(segments, values)
    scores = dict(zip([s.segment_id for s in segments], values, strict=True))
    order = _by_leaving(segments, values, marks, scope)
    return Analysis(state, scope, roots, marks, scores, order, scorer, context)


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


def _by_leaving(
    segments: list[ContextSegment], scores: list[float], marks: Marks, scope: Scope
) -> list[ContextSegment]:
    """Superseded garbage, other garbage, then the reachable; lowest score first, then oldest."""
    superseded: list[int] = []
    garbage: list[int] = []
    live: list[int] = []
    reached = marks.came_from
    for place, segment in enumerate(segments):
        if segment.segment_id in reached or (scope == "minor" and segment.generation == "old"):
            live.append(place)
        elif segment.superseded_by is None:
            garbage.append(place)
        else:
            superseded.append(place)
    for places in (superseded, garbage, live):
        places.sort(key=scores.__getitem__)
    return [segments[place] for place in (*superseded, *garbage, *live)]
