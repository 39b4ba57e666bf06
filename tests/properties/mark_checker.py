"""A naive checker of roots and marks: what scanning all segments finds."""

from __future__ import annotations

from ctxgc.core import GCState, Heap
from ctxgc.core.mark import mark_all, mark_young
from ctxgc.core.roots import compute_roots, root_reasons
from tests.properties import naive_engine, naive_history


def check_roots(state: GCState, history: naive_history.History) -> None:
    """The roots of a heap are those that scanning finds, all at once and one by one."""
    roots = compute_roots(state)
    assert {root: set(roots.why(root)) for root in roots} == _naive_roots(state, history)
    one_by_one = {s.segment_id: root_reasons(state, s) for s in state.heap.working()}
    assert {root: roots.why(root) for root in roots} == {s: r for s, r in one_by_one.items() if r}


def check_marks(heap: Heap, roots: set[str], strong: tuple[str, ...]) -> None:
    """A mark reaches what the fixpoint over all pairs reaches, in the whole heap and among the young."""
    segments = list(heap)
    assert set(mark_all(heap, roots, strong).reached()) == naive_engine.reachable(
        segments, roots, strong=strong
    )
    assert set(mark_young(heap, roots, strong).reached()) == naive_engine.reachable_young(
        segments, roots, strong=strong
    )


def _naive_roots(state: GCState, history: naive_history.History) -> dict[str, set[str]]:
    return naive_engine.roots(
        list(state.heap),
        now=state.now,
        step=state.heap.step,
        knobs=state.knobs,
        files=history.recent_files(),
        first_request=history.first_request,
        task=state.current_task_id,
        active_file=state.active_file,
        active_range=state.active_range,
        held=state.held,
    )
