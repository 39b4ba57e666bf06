"""To-do lists: one that a newer list has replaced leaves with the dead results, and can be recalled."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc import Session
from ctxgc.collector.calls import is_todo_list, without_entries
from ctxgc.core import FORMATS, Format
from tests.collector.agent import FIXED, LONG, Agent, Json, Step, Tool, drive, opened
from tests.examples import one_in
from tests.session.random_walk import faults

LIST = '{"todos": [{"content": "Fix it"}]}'
TRIMS = {"plugin_config": {"trim_calls": True, **FIXED}}


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("TodoWrite", LIST, True),
        ("todo_write", LIST, True),
        ("todowrite", LIST, True),
        ("write_todos", LIST, True),
        ("update_plan", '{"plan": []}', True),
        ("update_todo_list", LIST, True),
        ("manage_todo_list", LIST, True),
        ("mcp__planner__write_todos", LIST, True),
        ("functions.update_plan", LIST, True),
        ("todo_write", '{"merge": true, "todos": []}', False),
        ("todo_write", '{"merge": false, "todos": []}', True),
        ("TodoRead", LIST, False),
        ("add_todo", LIST, False),
        ("ExitPlanMode", LIST, False),
        ("update_planet", LIST, False),
        ("TodoWrite", "{}", False),
        ("TodoWrite", "[1]", False),
        ("TodoWrite", "{broken", False),
        ("TodoWrite", "[" * 100_000, False),
    ],
)
def test_a_list_is_known_by_its_tool_and_is_whole(
    name: str, arguments: str, expected: bool
) -> None:
    assert is_todo_list(name, arguments) is expected


def test_the_lines_of_a_stub_take_the_place_of_the_entries() -> None:
    assert without_entries(LIST, '[ctxgc: f("x")]\nFix é') == (
        '{"todos": ["[ctxgc: f(\\"x\\")]", "Fix é"]}'
    )


def entry(number: int, done: int) -> Json:
    """Return an entry whose name every list repeats; only one list ever names `once_`."""
    status = "completed" if number < done else "pending"
    said = f"Look at the part called step_{number} and make it do what the others do"
    return {"content": said, "status": status, "activeForm": f"Looking at step_{number}"}


class Planner(Agent):
    """An agent that writes its list anew now and then: `("plan", done)`, `("odd", done)` with a name."""

    failing = False

    def step(self, step: Step) -> tuple[list[Json], list[Json]]:
        if step[0] not in ("plan", "odd"):
            return super().step(step)
        todos = [entry(number, step[1]) for number in range(9)]
        if step[0] == "odd":
            todos[4]["content"] = f"Ask about once_{step[1]}"
        tool: Tool = ("TodoWrite", {"todos": todos}, "Error" if self.failing else "Written.")
        return self.calls([tool])


def lists(session: Session) -> list[Any]:
    parts = [p for m in session.history for p in m.parts if p.name == "TodoWrite"]
    return [json.loads(part.text)["todos"] for part in parts if part.kind == "tool_call"]


def is_cut(todos: list[Any]) -> bool:
    return isinstance(todos[0], str) and todos[0].startswith("[ctxgc: ")


WORK: list[Step] = [("plan", 0), *LONG[:4], ("odd", 1), *LONG[4:8], ("plan", 3), *LONG[8:], *LONG]


@pytest.mark.parametrize("format_", FORMATS)
def test_replaced_lists_shrink_to_a_mark_and_the_names_that_only_they_hold(
    format_: Format,
) -> None:
    session = opened(**TRIMS)
    drive(session, WORK, Planner(format_))
    first, second, last = lists(session)
    assert [is_cut(first), is_cut(second), is_cut(last)] == [True, True, False]
    assert len(first) == 1
    assert second[1:] == ["…", "Ask about once_1"]
    assert "superseded (newer list); context_recall(handle=" in first[0]
    reasons = [why for r in session.gc_history for why in r.details["why"].values()]
    assert reasons.count("superseded (newer list)") == 2
    assert faults(session) == []


def test_lists_are_left_alone_unless_that_is_asked_for() -> None:
    session = opened()
    drive(session, WORK, Planner())
    assert len(session.inspect().log.applied) > 0
    assert not any(map(is_cut, lists(session)))


def test_the_newest_list_stays_when_the_next_one_was_refused() -> None:
    session, agent = opened(**TRIMS), Planner()
    drive(session, WORK[:1], agent)
    agent.failing = True
    drive(session, [*LONG[:4], ("plan", 2), *LONG, *LONG], agent)
    assert len(session.inspect().log.applied) > 0
    assert not any(map(is_cut, lists(session)))


def test_a_list_beside_signed_thinking_is_left_alone() -> None:
    session, agent = opened(**TRIMS), Planner("anthropic")
    said, back = agent.step(("plan", 0))
    said[0]["content"].insert(0, {"type": "thinking", "thinking": "so be it", "signature": "s"})
    session.extend([*agent.begin(), *said, *back], format="anthropic")
    drive(session, WORK[1:], agent)
    assert [is_cut(todos) for todos in lists(session)] == [False, True, False]


def test_the_whole_list_can_be_recalled() -> None:
    session = opened(**TRIMS)
    drive(session, WORK, Planner())
    mark = lists(session)[0][0]
    handle = mark.split('handle="')[1].split('"')[0]
    assert json.loads(session.recall(handle).text) == {"todos": [entry(n, 0) for n in range(9)]}
    assert lists(session)[0] == [entry(n, 0) for n in range(9)]
    assert faults(session) == []


def test_a_list_is_no_reason_of_its_own_to_write_the_history_anew() -> None:
    session, agent = opened(**TRIMS), Planner()
    drive(session, [("plan", 0)], agent)
    drive(session, [("say", "orchard")], agent)
    session.append(agent.user("The story goes on. " * 2_000))
    drive(session, [("plan", 1), *[("say", "orchard")] * 9], agent)
    assert len(session.inspect().log.applied) == 0


@one_in(8)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["plan", "odd"]), st.integers(0, 5)),
            st.sampled_from(LONG),
        ),
        max_size=14,
    ),
    st.sampled_from(FORMATS),
)
def test_every_name_of_a_list_stays_somewhere_and_the_newest_list_is_whole(
    work: list[Step], format_: Format
) -> None:
    session, whole = opened(**TRIMS), opened(plugin="gc_none")
    drive(session, [*work, *LONG], Planner(format_))
    drive(whole, [*work, *LONG], Planner(format_))
    shown = str(session.view())
    assert all(f"once_{done}" in shown for verb, done in (w[:2] for w in work) if verb == "odd")
    assert lists(session)[-1:] == lists(whole)[-1:]
    assert faults(session) == []
