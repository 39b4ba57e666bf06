"""`generate_pruning_plan` over any list of candidates: the target met, or the shortfall exact."""

from __future__ import annotations

from itertools import chain
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ctxgc.collector import GCEngine
from ctxgc.core import PruningCandidate
from tests.requirements import requirement

TYPES = ("message", "code", "log", "note", "decision", "summary")
SCORES = st.one_of(st.sampled_from((0.0, 0.25, 0.5)), st.floats(-5, 100))

_MEMBERS = st.tuples(
    st.sampled_from(TYPES), SCORES, st.integers(0, 500), st.sampled_from(("stash", "delete")), st.booleans()
)  # fmt: skip


@st.composite
def bonds(draw: st.DrawFn) -> list[list[PruningCandidate]]:
    """Draw bonds of one to three candidates; of some bonds a part is missing, so that it must stay."""
    made = []
    for place, (members, reachable, whole) in enumerate(
        draw(
            st.lists(
                st.tuples(st.lists(_MEMBERS, min_size=1, max_size=3), st.booleans(), st.booleans())
            )
        )
    ):
        ids = [f"c{place}.{n}" for n in range(len(members))]
        names = tuple(ids) if whole or len(ids) == 1 else (*ids, f"c{place}.gone")
        made.append(
            [
                PruningCandidate(
                    segment_id=segment_id, type=kind, score=score, tokens=tokens, age=1.0, reason="drawn",
                    action="stash" if reachable else action, reachable=reachable, superseded=old, bond=names,
                )
                for segment_id, (kind, score, tokens, action, old) in zip(ids, members, strict=True)
            ]
        )  # fmt: skip
    return made


def _may_leave(bond: list[PruningCandidate]) -> bool:
    return len(bond[0].bond) == len(bond)


@requirement(
    "S1.engine.generate-pruning-plan", "S1.plan.accumulates", "S1.plan.grouped", "S1.plan.candidates",
    "S1.plan.total-tokens-freed", "S1.plan.most-prunable-first",
)  # fmt: skip
@given(bonds(), st.integers(0, 3_000), st.randoms(use_true_random=False))
def test_a_plan_meets_its_target_or_says_exactly_what_is_missing(
    drawn: list[list[PruningCandidate]], target: int, random: Random
) -> None:
    candidates = list(chain.from_iterable(drawn))
    random.shuffle(candidates)
    plan = GCEngine().generate_pruning_plan(candidates, target)
    most = sum(c.tokens for bond in drawn if _may_leave(bond) for c in bond)
    assert plan.total_tokens_freed == sum(c.freed for c in plan.candidates)
    assert plan.shortfall == max(0, target - most)
    assert plan.total_tokens_freed >= min(target, most)
    assert plan.stash_segments == [c.segment_id for c in plan.candidates if c.action == "stash"]
    assert plan.delete_segments == [c.segment_id for c in plan.candidates if c.action == "delete"]


@requirement("S1.candidates.sorted", "S0.sweep.lowest-first")
@given(bonds(), st.integers(0, 3_000))
def test_a_plan_takes_bonds_whole_garbage_first_and_no_more_than_it_needs(
    drawn: list[list[PruningCandidate]], target: int
) -> None:
    candidates = list(chain.from_iterable(drawn))
    plan = GCEngine().generate_pruning_plan(candidates, target)
    chosen = {c.segment_id for c in plan.candidates}
    gone = [bond for bond in drawn if bond[0].segment_id in chosen]
    assert chosen == {c.segment_id for bond in gone for c in bond}
    assert all(_may_leave(bond) for bond in gone)
    if any(bond[0].reachable for bond in gone):
        garbage = [bond for bond in drawn if _may_leave(bond) and not bond[0].reachable]
        assert sum(c.tokens for bond in garbage for c in bond) < target
        assert all(bond in gone for bond in garbage)
        gone = [bond for bond in gone if bond[0].reachable]
    surplus = max(0, plan.total_tokens_freed - target)
    sizes = [sum(c.tokens for c in bond) for bond in gone]
    assert all(size > surplus for size in sizes if size)


@given(bonds(), st.integers(0, 3_000))
def test_a_plan_lists_the_unreachable_before_the_reachable_and_low_scores_first(
    drawn: list[list[PruningCandidate]], target: int
) -> None:
    singles = [bond[0] for bond in drawn if len(bond[0].bond) == 1]
    plan = GCEngine().generate_pruning_plan(singles, target)
    keys = [(c.reachable, not c.superseded, c.score) for c in plan.candidates]
    assert keys == sorted(keys)


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 800))
def test_what_was_only_evacuated_leaves_whole_when_the_target_asks_for_it(
    freed: int, stub: int, target: int
) -> None:
    evacuated = PruningCandidate(
        segment_id="a", type="log", score=0.1, tokens=freed + stub, age=1.0, reason="drawn",
        action="evacuate", reachable=True, freed=freed, bond=("a",),
    )  # fmt: skip
    plan = GCEngine().generate_pruning_plan([evacuated], target)
    assert plan.stash_segments == (["a"] if target > freed else [])
    assert plan.evacuate_segments == (["a"] if target <= freed else [])
    assert plan.shortfall == max(0, target - freed - stub)
