"""Plans and candidates as data."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.collector import GCEngine
from ctxgc.core import (
    Evidence,
    PruningCandidate,
    PruningPlan,
    age_text,
    assemble,
    candidate_for,
    checked_target,
)
from ctxgc.core.plan import ACTIONS, EvidenceKind
from ctxgc.errors import InputError
from tests.core.build import NOW, cand, seg
from tests.requirements import requirement


@requirement(
    "S1.plan.candidates",
    "S1.plan.total-tokens-freed",
    "S1.plan.stash-segments",
    "S1.plan.delete-segments",
    "S1.plan.grouped",
    "S1.plan.reason",
    "S0.compression.three-actions",
)
def test_a_plan_groups_its_candidates_by_action_and_adds_them_up() -> None:
    chosen = [
        cand("a", 0.1),
        cand("b", 0.2, action="delete"),
        cand("c", 0.3, 100, action="compress", freed=75, reachable=True),
        cand("d", 0.4, 100, action="evacuate", freed=60, reachable=True),
        cand("e", 0.5),
    ]
    plan = assemble(chosen, target_tokens=200, tokens_before=1_000, stubs={"d": "stub"})
    assert plan.candidates == chosen
    assert (plan.stash_segments, plan.delete_segments) == (["a", "e"], ["b"])
    assert (plan.compress_segments, plan.evacuate_segments) == (["c"], ["d"])
    assert (plan.total_tokens_freed, plan.shortfall, plan.tokens_after) == (165, 35, 835)
    assert plan.reason == (
        "5 segments leave and free 165 tokens; 3 unreachable, 2 reachable with low scores; "
        "target 200, 35 tokens short"
    )
    assert (len(plan), plan.stubs) == (5, {"d": "stub"})


@requirement("S1.plan.structure")
def test_a_plan_can_be_made_of_the_five_fields_of_the_seed_in_its_order() -> None:
    plan = PruningPlan([cand("a")], 10, ["a"], [], "because")
    assert (plan.candidates, plan.total_tokens_freed, plan.reason) == ([cand("a")], 10, "because")
    assert (plan.stash_segments, plan.delete_segments) == (["a"], [])
    assert (plan.target_tokens, plan.shortfall, plan.heap_version) == (None, 0, None)


def test_a_plan_that_meets_its_target_says_so() -> None:
    assert assemble([cand("a")], target_tokens=10).reason.endswith("target 10 met")
    assert assemble([], target_tokens=None).reason == ("0 segments leave and free 0 tokens")


def test_a_plan_says_why_its_segments_leave_as_their_reasons_do() -> None:
    kinds: tuple[EvidenceKind, ...] = (
        "superseded", "copy", "resolved", "unreachable", "idle", "asked", "least_worth",
    )  # fmt: skip
    chosen = [
        candidate_for(seg(str(n)), NOW, 0.1, Evidence(kind=kind), reachable=kind == "least_worth")
        for n, kind in enumerate(kinds)
    ]
    assert assemble(chosen, target_tokens=None).reason.endswith(
        "; 3 superseded, 1 unreachable, 1 idle, 1 asked for, 1 reachable with low scores"
    )


def test_a_reason_of_ones_own_stands() -> None:
    assert assemble([], target_tokens=None, why="the user asked").reason == "the user asked"


@pytest.mark.parametrize("action", ACTIONS)
def test_a_candidate_frees_its_tokens_unless_told_otherwise(action: Any) -> None:
    assert cand("a", tokens=7, action=action).freed == 7
    assert cand("a", tokens=7, action=action, freed=0).freed == 0


def test_an_unknown_action_is_refused() -> None:
    """Known fault 6: an unknown action silently became stash."""
    with pytest.raises(InputError) as caught:
        cand("a", action="vanish")
    assert caught.value.details == {"field": "action"}
    assert caught.value.hint == "use one of: stash, evacuate, compress, delete"


def test_a_candidate_of_negative_size_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        cand("a", tokens=-1)
    assert caught.value.details == {"field": "tokens"}


@pytest.mark.parametrize("target", [-1, 1.5, "9", None, True])
def test_a_target_below_zero_or_no_whole_number_is_refused(target: Any) -> None:
    for ask in (checked_target, lambda t: GCEngine().generate_pruning_plan([], t)):
        with pytest.raises(InputError) as caught:
            ask(target)
        assert caught.value.details == {"field": "target_tokens"}
        assert "zero or more" in caught.value.hint


@pytest.mark.parametrize(
    ("evidence", "said", "brief"),
    [
        (Evidence(kind="unreachable"), "unreachable", "unreachable"),
        (
            Evidence(kind="unreachable", how="re-run", by="the run of make"),
            "unreachable; superseded (run again) by the run of make",
            "unreachable",
        ),
        (
            Evidence(kind="superseded", how="re-read", by="the read of a.py", request=41),
            "superseded (read again) by the read of a.py at request 41",
            "superseded (read again at request 41)",
        ),
        (
            Evidence(kind="least_worth", tokens=3200),
            "least needed: 3,200 tokens had to go",
            "least needed",
        ),
        (Evidence(kind="asked"), "asked for", "asked for"),
    ],
)
def test_the_reason_of_a_candidate_is_its_evidence_in_words(
    evidence: Evidence, said: str, brief: str
) -> None:
    made = candidate_for(seg("a"), NOW, 0.5, evidence)
    assert (made.reason, made.evidence, evidence.brief) == (said, evidence, brief)


def test_a_candidate_with_a_reason_alone_says_that_somebody_else_gave_it() -> None:
    made = cand("a", reason="too chatty")
    assert made.evidence == Evidence(kind="plugin", how="too chatty")
    assert str(made.evidence) == made.reason


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (3_599, "59 min"), (7_200, "2 h"), (200_000, "2 d")],
)
def test_an_age_is_told_in_its_largest_whole_unit(seconds: float, text: str) -> None:
    assert age_text(seconds) == text


def test_a_candidate_is_frozen() -> None:
    with pytest.raises(AttributeError):
        cand("a").score = 1.0  # type: ignore[misc]
    assert isinstance(cand("a"), PruningCandidate)
