"""What may leave, and why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxgc.errors import CtxgcError, StalePlanError
from ctxgc.mcp import NewSegment
from tests.fakes import still
from tests.mcp.contexts import everything, filled, log, make, opened, put
from tests.requirements import requirement


@requirement(
    "S0.tools.analyze",
    "S0.tools.analyze-usage",
    "S0.tools.analyze-candidates",
    "S0.tools.analyze-reason",
    "S0.behavior.explains",
)
def test_an_analysis_shows_usage_and_candidates_with_reasons() -> None:
    service = make(limit=1_000)
    ids = filled(service, 40)

    found = service.analyze()

    assert found["usage"] == {
        "tokens": 400,
        "soft_limit": 700,
        "hard_limit": 900,
        "context_limit": 1_000,
        "percent": 40.0,
        "zone": "safe",
    }
    assert [c["segment_id"] for c in found["candidates"]] == ids[:20]
    assert found["candidates"][0] == {
        "segment_id": ids[0],
        "type": "log",
        "score": pytest.approx(found["candidates"][0]["score"]),
        "tokens": 10,
        "action": "stash",
        "reason": "unreachable",
    }
    assert found["plan"]["segments"] == 30
    assert found["plan"]["tokens_freed"] == 300
    assert found["next"] == f"context_gc_prune(plan_id='{found['plan']['plan_id']}')"


@requirement("S0.tools.analyze-max-candidates")
@pytest.mark.parametrize("most", [0, 1, 7, 1_000])
def test_max_candidates_bounds_the_list_but_not_the_plan(most: int) -> None:
    service = make()
    filled(service, 40)
    found = service.analyze(most)
    assert len(found["candidates"]) == min(most, 30)
    assert found["plan"]["segments"] == 30


@requirement("S0.tools.analyze-include-scores")
def test_scores_are_shown_only_when_they_are_wanted() -> None:
    service = make()
    filled(service, 20)
    shown = service.analyze(include_scores=True)["candidates"]
    hidden = service.analyze(include_scores=False)["candidates"]
    assert [c.pop("score") >= 0 for c in shown] == [True] * 10
    assert shown == hidden


@requirement("S0.tools.analyze-dry-run", "S0.behavior.analysis-only")
def test_a_dry_run_changes_nothing() -> None:
    store = opened()
    service = make(store)
    filled(service, 40)
    before = everything(store), store.revision("mcp")
    service.analyze(dry_run=True, target_tokens=10)
    assert (everything(store), store.revision("mcp")) == before
    assert service.usage()["usage"]["tokens"] == 400


def test_without_dry_run_the_plan_is_applied_at_once() -> None:
    service = make()
    ids = filled(service, 40)
    done = service.analyze(dry_run=False)
    assert done["stashed"] == ids[:30]
    assert done["usage"]["before"] == 400
    assert done["usage"]["after"] == 100


@pytest.mark.parametrize("target", [0, 100, 250, 399, 400, 5_000])
def test_a_target_is_met_or_what_is_short_is_told(target: int) -> None:
    service = make()
    filled(service, 40)
    plan = service.analyze(target_tokens=target)["plan"]
    assert plan["tokens_after"] - plan["short_of_target"] <= max(target, 0)
    assert (plan["short_of_target"] > 0) == (target < 100)


def test_a_cold_and_long_segment_is_proposed_for_compression() -> None:
    service = make(limit=100_000)
    put(service, log(0, 600, name="big"), NewSegment(text="see big", references=("big",)))
    service.pin(["see big"], None, pinned=True)
    for start in range(1, 60):
        put(service, log(start))
    proposed = service.analyze()["worth_compressing"]
    assert [p["name"] for p in proposed] == ["big"]
    assert "cold but important" in proposed[0]["reason"]


def test_a_plan_is_refused_once_the_context_has_changed() -> None:
    service = make()
    ids = filled(service, 40)
    plan_id = service.analyze()["plan"]["plan_id"]
    service.pin([ids[0]], None, pinned=True)
    with pytest.raises(StalePlanError) as caught:
        service.prune(plan_id=plan_id)
    assert caught.value.to_dict()["error"]["code"] == "stale_plan"
    assert "context_gc_analyze" in caught.value.hint
    assert service.usage()["usage"]["tokens"] == 400


def test_a_plan_expires_and_another_context_does_not_know_it() -> None:
    clock, store = still(), opened()
    service = make(store, clock=clock)
    filled(service, 40)
    plan_id = service.analyze()["plan"]["plan_id"]
    other = make(store, session="other")
    filled(other, 40)
    with pytest.raises(StalePlanError):
        other.prune(plan_id=plan_id)
    clock.wait(hours=2)
    with pytest.raises(StalePlanError):
        service.prune(plan_id=plan_id)


def test_a_plan_can_be_applied_once() -> None:
    service = make()
    filled(service, 40)
    plan_id = service.analyze()["plan"]["plan_id"]
    assert service.prune(plan_id=plan_id)["tokens_saved"] == 300
    with pytest.raises(CtxgcError):
        service.prune(plan_id=plan_id)


def test_usable_plans_are_listed() -> None:
    service = make()
    ids = filled(service, 40)
    kept = service.analyze()["plan"]
    assert [p["plan_id"] for p in service.plans()["plans"]] == [kept["plan_id"]]
    service.pin([ids[0]], None, pinned=True)
    assert service.plans() == {"plans": []}


@pytest.mark.parametrize("share", [0.9, 0.6, 0.4, 0.1])
def test_a_plan_foretells_what_the_session_counts_once_it_is_applied(share: float) -> None:
    service = make(limit=200_000)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Fix the cart"}]
    for n in range(40):
        asked = {"name": "read_file", "arguments": json.dumps({"path": f"src/f{n % 5}.py"})}
        call = {"id": f"c{n}", "type": "function", "function": asked}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": log(n, 60).text},
        ]
    service.ingest((), [*messages, {"role": "assistant", "content": "done"}])
    target = int(service.usage()["usage"]["tokens"] * share)

    plan = service.analyze(100, target_tokens=target)
    done = service.prune(plan_id=plan["plan"]["plan_id"])

    said = plan["plan"]
    assert said["tokens_after"] == done["usage"]["after"]
    assert said["tokens_freed"] == done["tokens_saved"]
    assert said["short_of_target"] == max(0, done["usage"]["after"] - target)
    assert (said["short_of_target"] == 0) == (share > 0.4)
    assert f"target {target}" in said["summary"]
    stale = sum("superseded" in candidate["reason"] for candidate in plan["candidates"])
    assert f"{stale} superseded" in said["summary"]
