"""plan(): what a collection would do, as data; nothing changes."""

from __future__ import annotations

import pytest

from tests.session.build import filled, state_of

COLLECTORS = ("gc_truncate", "gc_summarize", "gc_hybrid", "gc_budget", "gc_mark_sweep")


@pytest.mark.parametrize("plugin", COLLECTORS)
def test_a_plan_changes_nothing_and_the_collection_does_what_it_says(plugin: str) -> None:
    session = filled(
        12, tools=1, plugin=plugin, preserve_recent_turns=1, recent_messages=2, recent_files=0
    )
    state = state_of(session)
    plan = session.plan(900)
    assert state_of(session) == state
    assert session.plan(900).total_tokens_freed == plan.total_tokens_freed
    result = session.collect(900)
    left = {s.segment_id for s in session.segments() if s.tier == "stashed"}
    assert {candidate.segment_id for candidate in plan.candidates} == left
    assert (plan.total_tokens_freed, plan.shortfall) == (result.tokens_freed, result.shortfall)


def test_every_candidate_says_why_and_how_it_would_leave() -> None:
    session = filled(12, tools=1, plugin="gc_mark_sweep", recent_messages=2, recent_user_messages=1)
    plan = session.plan(700)
    assert plan.candidates
    assert {candidate.action for candidate in plan.candidates} <= {"stash", "evacuate"}
    assert all(c.reason == str(c.evidence) for c in plan.candidates)


def test_a_plan_of_nothing_is_empty() -> None:
    plan = filled(3).plan(10**6)
    assert (plan.candidates, plan.total_tokens_freed, plan.shortfall) == (
        (),
        0,
        0,
    ) or not plan.candidates
