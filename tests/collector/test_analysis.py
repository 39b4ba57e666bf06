"""Analysis: what is reachable, why, and in which order the rest would leave."""

from __future__ import annotations

from ctxgc.collector import Analysis, Hop, analyze
from ctxgc.core import EngineOptions, Heap
from tests.core.build import BARE, NOW, call, heap_of, result, seg, state


def analysis(heap: Heap, **fields: object) -> Analysis:
    return analyze(state(heap, **fields), BARE)


def test_a_chain_tells_the_root_its_reason_and_every_link() -> None:
    heap = heap_of(
        seg("reply"),
        seg("root", pinned=True, task_id="t", references=["reply"]),
        call("c", "k", topic_id="x"),
        result("r", "k", file_path="src/a.py"),
        seg("view", file_path="src/a.py", line_range=(1, 5), tags=["bug-1"]),
        seg("tagged", tags=["bug-1"]),
        seg("lost"),
    )
    heap.link("reply", "c")
    found = analysis(heap, current_task_id="t")
    assert found.chain("tagged") == (
        Hop("root", "pinned, current task"),
        Hop("reply", "reference"),
        Hop("c", "reference"),
        Hop("r", "bond"),
        Hop("view", "same path src/a.py"),
        Hop("tagged", "same tag bug-1"),
    )
    assert (found.chain("lost"), found.is_reachable("lost")) == ((), False)


def test_links_are_named_by_their_kind() -> None:
    heap = heap_of(seg("a"), seg("b"), seg("x", pinned=True, reply_to="a", derived_from="b"))
    found = analysis(heap)
    assert [found.chain(name)[-1].via for name in ("a", "b")] == ["reply", "derived-from"]


def test_in_a_minor_analysis_the_old_hold_the_young() -> None:
    heap = heap_of(seg("young"), seg("old", generation="old", references=["young"]))
    found = analyze(state(heap), BARE, "minor")
    assert found.chain("young") == (Hop("young", "live old segment"),)


def test_the_order_holds_everybody_but_roots_and_is_that_of_leaving() -> None:
    heap = heap_of(
        seg("live log"),
        seg("decision", type="decision"),
        seg("stale", command="make"),
        seg("log", command="make"),
        seg("root", pinned=True, references=["live log"]),
    )
    found = analysis(heap)
    assert [s.segment_id for s in found.order] == ["stale", "log", "decision", "live log"]
    assert sorted(found.scores) == ["decision", "live log", "log", "stale"]


def test_a_bond_is_worth_as_much_as_its_most_valuable_member() -> None:
    heap = heap_of(call("c", "k"), result("r", "k"), seg("x"))
    scores = analysis(heap).scores
    assert scores["c"] == scores["r"] > scores["x"]


def test_levelling_bonds_works_for_scores_below_zero() -> None:
    heap = heap_of(call("c", "k"), result("r", "k", pinned=True), result("s", "k"))
    found = analyze(state(heap), EngineOptions(profile="s1"))
    assert found.scores["c"] == found.scores["s"]


def test_a_score_can_be_explained() -> None:
    heap = heap_of(seg("a"))
    found = analysis(heap)
    assert found.explain("a").score == found.scores["a"]
    assert (found.state.now, found.scope) == (NOW, "major")
