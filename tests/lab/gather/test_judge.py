"""The judge of gather and use: in the view, one recall away, or lost."""

from __future__ import annotations

import msgspec
import pytest

from ctxgc.economics import price_sheet
from ctxgc.lab import FAMILIES, TaskPlan, TaskResult, make_task, plans, play_task, policy
from ctxgc.lab.policies import Policy
from tests.lab.gather.plan_cases import DropResults, a_plan

SHEET = price_sheet("anthropic-5m")
FETCHED = [family for family in FAMILIES if family not in ("chat", "plan")]


def play(who: Policy | str, plan: TaskPlan) -> TaskResult:
    return play_task(policy(who) if isinstance(who, str) else who, plan, SHEET)


def test_never_pruning_answers_everything_that_fits_and_pays_the_whole_bill() -> None:
    small = [plan for plan in plans(windows=(16_000,)) if plan.fill <= 0.5][::5]
    for plan in small:
        found = play("never", plan)
        assert (found.from_view, found.lost, found.recalls, found.over) == (True, 0, 0, False)
        assert found.bill == pytest.approx(found.unpruned)
        assert found.fits


def test_never_pruning_fails_above_the_window_and_all_later_needs_are_lost() -> None:
    found = play("never", a_plan(fill=3.0, gathered=0.3))
    assert found.over
    assert (found.from_view, found.one_recall, found.lost) == (False, False, found.needs)
    assert found.fits


@pytest.mark.parametrize("family", FETCHED)
def test_a_policy_that_drops_every_result_answers_nothing_and_loses_nothing_behind_handles(
    family: str,
) -> None:
    found = play(DropResults(handles=True), a_plan(family=family))
    needs = [need for use in make_task(a_plan(family=family)).uses for need in use.needs]
    again = len(needs) - len(set(needs))  # what was recalled for a subtotal is there for the sum
    assert (found.view, found.recall, found.lost) == (again, found.needs - again, 0)
    assert not found.from_view
    assert found.recalls >= len({need.subject for need in found.missed})
    assert found.recall_tokens > 0
    assert SHEET.write * found.recall_tokens < found.recall_cost < found.bill


@pytest.mark.parametrize("family", FETCHED)
def test_what_left_without_a_handle_is_lost(family: str) -> None:
    found = play(DropResults(handles=False), a_plan(family=family))
    assert (found.view, found.recall, found.lost) == (0, 0, found.needs)
    assert (found.recalls, found.recall_cost, found.one_recall) == (0, 0.0, False)


def test_a_handle_that_brings_back_something_else_saves_nothing() -> None:
    found = play(DropResults(handles=True, empty=True), a_plan())
    assert (found.view, found.recall, found.lost) == (0, 0, found.needs)


def test_a_policy_that_raises_is_reported_and_loses_everything() -> None:
    class Raises(DropResults):
        def open(self, task: object) -> object:
            raise ValueError("no  idea")

    found = play(Raises(handles=False), a_plan())
    assert (found.error, found.lost) == ("ValueError: no idea", found.needs)


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_a_session_plays_in_the_format_of_the_plan_and_loses_nothing(form: str) -> None:
    found = play("ctxgc", a_plan(format=form, fill=1.5, gathered=0.35, content="log"))
    assert (found.error, found.over, found.lost) == ("", False, 0)
    assert found.view + found.recall == found.needs


def test_a_rule_for_chat_completions_gets_the_task_in_that_format() -> None:
    plan = a_plan(format="anthropic", fill=1.5, gathered=0.35)
    chat = msgspec.structs.replace(plan, format="openai")
    found = play("mask-oldest", plan)
    assert found.error == ""
    assert msgspec.structs.replace(found, plan=chat) == play("mask-oldest", chat)


def test_content_that_is_larger_than_the_window_does_not_fit_it() -> None:
    found = play("mask-oldest", a_plan(fill=3.0, gathered=1.8))
    assert not found.fits
    assert found.needed > 16_000
