"""The oracles: nothing that is needed leaves to save money, and every edit pays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.economics import price_sheet
from ctxgc.lab import Regime, Run, policy, replay_run
from ctxgc.lab.facts import total_weight
from ctxgc.lab.oracles import LONGEST_LINE, STUB, cover, facts_of
from ctxgc.testing import check_history
from tests.lab.builders import FACTS, Json, run_of, user
from tests.lab.long_runs import calls, dialogue, long_results, long_runs, task_of, tool, views

SHEET = price_sheet("anthropic-5m")
ORACLES = ["oracle-line", "oracle-message"]
DULL = "\n".join(f"dull line with nothing in it, number {'i' * n}" for n in range(60))


def contents(name: str, run: Run) -> list[str]:
    """Return the results as the last request shows them."""
    *_, (_, view) = views(policy(name).open(task_of(run)), run)
    return [str(message["content"]) for message in view if message["role"] == "tool"]


def needed_late(fact: str, requests: int = 12) -> list[Json]:
    """Return the rest of a run in which the last answer uses a fact."""
    rest: list[Json] = []
    for number in range(requests):
        rest += [calls("next", [f"later-{number}"]), tool(f"later-{number}", "ok")]
    return [*rest, {"role": "assistant", "content": f"it was {fact}"}]


@given(run=long_runs(), name=st.sampled_from(ORACLES))
def test_for_money_nothing_leaves_that_is_needed_and_the_bill_never_rises(
    run: Run, name: str
) -> None:
    found = replay_run(policy(name), run, Regime(), SHEET)
    assert (found.error, found.refused) == ("", 0)
    assert (found.strict, found.resident) == (found.steps, found.needs)
    assert found.bill <= found.unpruned + 1e-6
    assert found.counts["collections"] == found.breaks


@given(run=long_runs(), name=st.sampled_from(ORACLES), share=st.sampled_from([0.25, 0.5]))
def test_in_a_window_the_history_stays_valid_and_the_head_stays(
    run: Run, name: str, share: float
) -> None:
    limit = int(share * total_weight(run.messages))
    for history, view in views(policy(name).open(task_of(run, "window", limit)), run):
        assert check_history(view) == []
        assert view[0] == history[0]
        assert total_weight(view) <= total_weight(history)


@pytest.mark.parametrize("name", ORACLES)
def test_a_result_is_shown_once_before_it_leaves(name: str) -> None:
    run = dialogue(6)
    shown = [
        [message["content"] == STUB for message in view if message["role"] == "tool"]
        for _, view in views(policy(name).open(task_of(run)), run)
    ]
    # With one request left no edit pays.
    assert shown == [[], [False], *([*[True] * n, False] for n in range(1, 5)), shown[-1]]


def test_a_result_that_will_be_used_stays_whole() -> None:
    text = f"{DULL}\nthe port is cfg_port_8443 here\n{DULL}"
    run = run_of(user("go"), calls("a", ["x"]), tool("x", text), *needed_late("cfg_port_8443"))
    assert contents("oracle-message", run)[0] == text


def test_of_two_that_show_a_fact_only_one_stays() -> None:
    text = f"{DULL}\nthe port is cfg_port_8443 here"
    run = run_of(
        user("go"),
        *(calls("a", ["x"]), tool("x", text), calls("b", ["y"]), tool("y", text)),
        *needed_late("cfg_port_8443"),
    )
    assert sorted(map(len, contents("oracle-message", run)[:2])) == [len(STUB), len(text)]


def test_a_window_gives_up_the_fewest_needs_per_token() -> None:
    rich = "\n".join(f"fact_{name}_{n}" for name in "abcdef" for n in range(40))
    poor = f"{DULL}\nlone_fact_7 stands here"
    run = run_of(
        user("go"),
        *(calls("a", ["x"]), tool("x", rich), calls("b", ["y"]), tool("y", poor)),
        *needed_late(" ".join([*rich.split("\n"), "lone_fact_7"])),
    )
    # Room enough until both were sent.
    limit = int((total_weight(run.messages[:5]) + 60) / 0.8)
    *_, (_, view) = views(policy("oracle-message").open(task_of(run, "window", limit)), run)
    assert [m["content"] for m in view if m["role"] == "tool"][:2] == [rich, STUB]


def test_units_leave_whole_where_results_are_not_enough() -> None:
    talk = [user("go")]
    for number in range(20):
        talk += [{"role": "assistant", "content": DULL}, user(f"more {number}")]
    run = run_of(*talk, {"role": "assistant", "content": "done"})
    limit = total_weight(run.messages) // 2
    sizes = [
        total_weight(view)
        for _, view in views(policy("oracle-message").open(task_of(run, "window", limit)), run)
    ]
    assert max(sizes) <= 0.8 * limit


def test_only_the_needed_lines_of_a_result_stay() -> None:
    text = f"{DULL}\nthe port is cfg_port_8443 here\n{DULL}"
    run = run_of(user("go"), calls("a", ["x"]), tool("x", text), *needed_late("cfg_port_8443"))
    assert contents("oracle-line", run)[0] == f"{STUB}\nthe port is cfg_port_8443 here"


@given(text=long_results(), needed=st.frozensets(st.sampled_from(FACTS)))
def test_a_cover_is_lines_of_the_text_in_order_that_hold_every_needed_fact_there_is(
    text: str, needed: frozenset[str]
) -> None:
    lines = cover(text, needed)
    there = facts_of(text) & needed
    assert {fact for line in lines for fact in facts_of(line)} >= there
    assert len(lines) <= len(there)
    rest = iter(text.split("\n"))
    assert all(line in rest for line in lines)


def test_one_line_with_all_facts_is_taken_before_many_with_one() -> None:
    text = "load_config\nHttpServer\nload_config, HttpServer\n12345"
    assert cover(text, frozenset({"load_config", "HttpServer"})) == ["load_config, HttpServer"]


def test_of_a_long_line_only_the_surroundings_of_a_fact_are_taken() -> None:
    line = "word " * LONGEST_LINE + "load_config" + " word" * LONGEST_LINE
    at = line.index("load_config")
    assert cover(line, frozenset({"load_config"})) == [line[at - 25 : at + len("load_config") + 25]]
