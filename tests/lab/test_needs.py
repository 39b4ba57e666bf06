"""Needs: used now, seen before, and neither in the head nor just now."""

from __future__ import annotations

from ctxgc.lab.needs import Needs
from tests.lab.builders import answer, result, run_of, user


def needs(*messages: dict[str, object]) -> list[tuple[int, tuple[str, ...]]]:
    return [(step.index, step.needs) for step in Needs(run_of(*messages)).steps]


def test_each_answer_behind_the_first_request_is_a_step() -> None:
    system = {"role": "system", "content": "be kind"}
    hello = {"role": "assistant", "content": "hello"}
    run = run_of(system, hello, user("go"), answer("a"), user("on"), answer("b"))
    assert [step.index for step in Needs(run).steps] == [3, 5]


def test_a_need_was_seen_before_but_not_in_the_head_or_the_last_two() -> None:
    past = [
        user("begin at main_loop"),
        user("see old_name"),
        user("x"),
        user("y new_name"),
        user("z"),
    ]
    assert needs(*past, answer("main_loop old_name new_name first_use")) == [(5, ("old_name",))]


def test_an_answer_may_need_what_the_agent_itself_said() -> None:
    said = [user("go"), answer("found load_config"), user("a"), user("b")]
    assert needs(*said, answer("again load_config")) == [(1, ()), (4, ("load_config",))]


def test_arguments_of_calls_need_and_give_facts() -> None:
    asked = answer("", path="src/app/main.py\nend")
    past = [user("go"), asked, result(asked, "ok"), user("b")]
    assert needs(*past, answer("", path="src/app/main.py"))[-1] == (4, ("src/app/main.py",))


def test_words_are_needed_while_they_are_rare() -> None:
    rare = [user("go"), *[user("an elephant")] * 3, user("x"), user("y"), answer("elephant")]
    often = [user("go"), *[user("an elephant")] * 4, user("x"), user("y"), answer("elephant")]
    assert Needs(run_of(*rare)).steps[0].words == ("elephant",)
    assert Needs(run_of(*often)).steps[0].words == ()


def test_the_newest_results_are_those_since_the_last_answer() -> None:
    asked = answer("", path="a")
    run = run_of(user("go"), asked, result(asked, "1"), result(asked, "2"), answer("end"))
    assert [step.newest for step in Needs(run).steps] == [(), (2, 3)]
