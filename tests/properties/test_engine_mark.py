"""Roots, marks and ancestry, judged by the naive engine over random heaps."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxgc.core import GCState
from ctxgc.core.mark import ancestry, mark_all, reachable
from ctxgc.core.roots import compute_roots
from tests.properties import heaps, naive_engine, naive_history
from tests.properties.mark_checker import check_marks, check_roots
from tests.requirements import requirement

KIND_SETS = st.sampled_from((("path", "tag", "topic"), ("path",), ("tag", "topic"), ()))
PICKS = st.sets(st.integers(0, 60), max_size=4)


@st.composite
def cases(draw: st.DrawFn, max_size: int = 14) -> tuple[GCState, naive_history.History]:
    """Draw a heap with a state, beside the history that led to it."""
    segments = draw(heaps.segment_lists(max_size))
    history = naive_history.History()
    history.add_all(segments)
    return draw(heaps.states(heaps.heap_of(segments))), history


@requirement("S0.roots.compute-roots", "S1.acceptance.root-sets")
@given(cases())
def test_every_rule_finds_the_roots_that_scanning_finds(
    case: tuple[GCState, naive_history.History],
) -> None:
    check_roots(*case)


@requirement("S0.mark.transitive", "S0.mark.cycles", "S1.acceptance.reachability")
@given(heaps.segment_lists(), PICKS, KIND_SETS)
def test_a_mark_reaches_what_the_fixpoint_over_all_pairs_reaches(
    segments: list, picks: set[int], strong: tuple[str, ...]
) -> None:
    roots = {segments[pick % len(segments)].segment_id for pick in picks}
    check_marks(heaps.heap_of(segments), roots, strong)


@pytest.mark.deep
@settings(max_examples=5_000)
@given(heaps.segment_lists(60), PICKS, KIND_SETS)
def test_a_mark_reaches_what_the_fixpoint_reaches_on_larger_heaps(
    segments: list, picks: set[int], strong: tuple[str, ...]
) -> None:
    roots = {segments[pick % len(segments)].segment_id for pick in picks}
    check_marks(heaps.heap_of(segments), roots, strong)


@given(cases(), KIND_SETS)
def test_every_hop_of_a_reason_chain_is_a_link_and_the_first_one_a_root(
    case: tuple[GCState, naive_history.History], strong: tuple[str, ...]
) -> None:
    state, _ = case
    roots = compute_roots(state)
    marks, links = mark_all(state.heap, roots, strong), naive_engine.all_links(state.heap)
    for segment_id in marks.reached():
        chain = [state.heap.get(hop) for hop in marks.chain(segment_id)]
        assert chain[0].segment_id in roots
        assert chain[-1].segment_id == segment_id
        assert all(naive_engine.reaches(a, b, links, strong) for a, b in pairwise(chain))


@given(cases(), KIND_SETS, st.sampled_from((1, 5, 1_000)))
def test_ancestry_agrees_with_the_mark_or_says_that_it_does_not_know(
    case: tuple[GCState, naive_history.History], strong: tuple[str, ...], budget: int
) -> None:
    state, _ = case
    roots = compute_roots(state)
    held = naive_engine.reachable(list(state.heap), roots, strong=strong)
    links = naive_engine.all_links(state.heap)
    for segment in state.heap.working():
        found = ancestry(state, segment, budget, strong)
        assert found.looks <= budget + 1
        assert budget < 1_000 or found.verdict != "unknown"
        assert found.verdict in ("unknown", "held" if segment.segment_id in held else "free")
        chain = [state.heap.get(hop) for hop in found.chain]
        if found.verdict == "held":
            assert (chain[0].segment_id in roots, chain[-1]) == (True, segment)
            assert all(naive_engine.reaches(a, b, links, strong) for a, b in pairwise(chain))


GRAPHS = st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh")))


@requirement("S1.engine.compute-reachability", "S1.mark.mark-phase")
@given(GRAPHS, st.sets(st.sampled_from("abcdefghz")))
def test_plain_reachability_is_the_smallest_closed_set_with_the_roots(
    graph: dict[str, list[str]], roots: set[str]
) -> None:
    closed = set(roots)
    for _ in "abcdefgh":
        closed |= {target for source in closed for target in graph.get(source, ())}
    assert reachable(roots, graph) == closed
