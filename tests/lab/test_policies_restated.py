"""Published clearing rules and plain masks, stated again."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.lab import POLICIES, Policy, Run, policy
from ctxgc.lab.facts import total_weight
from ctxgc.lab.policies import RegimeKind
from ctxgc.lab.policies_restated import ANTHROPIC_CLEARED, OMITTED, OPENCODE_CLEARED
from ctxgc.testing import check_history
from tests.lab.builders import run_of, user
from tests.lab.long_runs import calls, dialogue, long_runs, task_of, tool, views

NAMES = sorted(
    name for name, where in POLICIES.items() if where.startswith("ctxgc.lab.policies_restated:")
)


def masked(
    name: str, run: Run, text: str, regime: RegimeKind = "cost", limit: int = 0
) -> list[int]:
    """Return how many results are masked in each request."""
    player = policy(name).open(task_of(run, regime, limit or 200_000))
    return [sum(m.get("content") == text for m in view) for _, view in views(player, run)]


@given(run=long_runs(), name=st.sampled_from(NAMES), regime=st.sampled_from(["cost", "window"]))
def test_no_rule_ever_makes_a_history_that_a_provider_refuses(
    run: Run, name: str, regime: RegimeKind
) -> None:
    limit = 200_000 if regime == "cost" else total_weight(run.messages) // 2
    player = policy(name).open(task_of(run, regime, limit))
    for history, view in views(player, run):
        assert check_history(view) == check_history(history) == []
        assert view[0] == history[0]
        assert total_weight(view) <= total_weight(history)


@given(run=long_runs(), name=st.sampled_from(NAMES))
def test_a_rule_knows_nothing_of_what_comes(run: Run, name: str) -> None:
    told = [view for _, view in views(policy(name).open(task_of(run)), run)]
    cut = run_of(*run.messages[: len(run.messages) // 2])
    blind = [view for _, view in views(policy(name).open(task_of(cut)), cut)]
    assert told[: len(blind)] == blind


@pytest.mark.parametrize("name", NAMES)
def test_each_says_what_it_is_and_where_it_stands(name: str) -> None:
    made: Policy = policy(name)
    assert (made.name, made.kind) == (name, "restated")
    assert made.settings["source"]


def test_a_mask_keeps_the_newest_results_in_every_request() -> None:
    assert masked("mask-keep-3", dialogue(6), OMITTED) == [0, 0, 0, 0, 1, 2, 3]


def test_a_batch_waits_until_it_is_full() -> None:
    assert masked("mask-10-3", dialogue(18), OMITTED) == [*[0] * 10, *[7] * 7, 14, 14]


def test_half_of_the_history_leaves_before_each_request() -> None:
    run = dialogue(4)
    player = policy("drop-oldest-half").open(task_of(run))
    assert [len(view) for _, view in views(player, run)] == [1, 3, 3, 5, 5]


@pytest.mark.parametrize("name", ["mask-oldest", "truncate-oldest", "drop-oldest-half"])
def test_a_window_is_never_exceeded(name: str) -> None:
    run, limit = dialogue(12), 2_500
    player = policy(name).open(task_of(run, "window", limit))
    sizes = [total_weight(view) for _, view in views(player, run)]
    assert max(sizes) <= 0.8 * limit
    assert player.counts()["collections"] == sum(
        later < sooner for sooner, later in pairwise(sizes)
    )


def test_masks_make_room_from_the_oldest_on_and_stop_at_the_target() -> None:
    run, limit = dialogue(12), 4_000
    player = policy("mask-oldest").open(task_of(run, "window", limit))
    *_, (_, view) = views(player, run)
    states = [m["content"] == OMITTED for m in view if m["role"] == "tool"]
    assert states == sorted(states, reverse=True)
    assert any(states)
    assert not all(states)


def big_turns(turns: int) -> Run:
    """Turns of one call each with a result of 15,000 tokens by opencode's estimate."""
    messages = []
    for turn in range(turns):
        messages += [user(f"turn {turn}"), calls("look", [f"call-{turn}"])]
        messages.append(tool(f"call-{turn}", "0123456789 abcd\n" * 3_750))
        messages.append({"role": "assistant", "content": "seen"})
    return run_of(*messages)


def test_opencode_prunes_when_a_turn_has_ended_and_spares_two_turns_and_40k_tokens() -> None:
    # Results of the last two turns do not count; two of 15k fit into 40k, and the next two are 30k.
    counts = masked("opencode-prune", big_turns(8), OPENCODE_CLEARED)
    assert counts == [*[0] * 12, 2, 2, 2, 2]


def test_opencode_without_turns_prunes_as_soon_as_20k_tokens_can_go() -> None:
    counts = masked("opencode-prune-eager", big_turns(5), OPENCODE_CLEARED)
    assert counts == [0, 0, 0, 0, 0, 0, 0, 2, 2, 2]


def test_anthropic_clears_all_but_three_results_above_its_trigger() -> None:
    run = dialogue(12, lines=300)
    trigger = next(
        number
        for number, (history, _) in enumerate(views(policy("never").open(task_of(run)), run))
        if total_weight(history) > 30_000
    )
    counts = masked("anthropic-clear-30k", run, ANTHROPIC_CLEARED)
    assert counts[: trigger + 1] == [*[0] * trigger, trigger - 3]
    assert masked("anthropic-clear", run, ANTHROPIC_CLEARED) == [0] * len(counts)


def test_anthropic_does_not_clear_what_is_not_worth_it() -> None:
    # Above the trigger in WINDOW, but all that could be cleared is less than 5,000 tokens.
    run = dialogue(6)
    assert set(masked("anthropic-clear-30k", run, ANTHROPIC_CLEARED, "window", 1_000)) == {0}
    assert max(masked("anthropic-clear", run, ANTHROPIC_CLEARED, "window", 1_000)) == 3
