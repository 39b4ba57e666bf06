"""Calls: an edit that was made loses its old text, and nothing that only it holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc import Session
from ctxgc.collector.calls import LEAST_SAVING, OLD_TEXT, without_old_text
from ctxgc.core import FORMATS, Format, Text
from ctxgc.wire import strings_of
from tests.collector.agent import LONG, Agent, Json, Step, drive, line_of, opened
from tests.session.random_walk import faults

OLD = "\n".join(line_of(0, n) for n in range(6))


def edit(old: str = OLD, new: str = "pass", **more: Any) -> str:
    return json.dumps({"file_path": "src/a.py", "old_string": old, "new_string": new, **more})


def test_old_text_that_stands_elsewhere_becomes_a_mark() -> None:
    short = without_old_text(edit(replace_all=False), lambda _: False)
    assert short == edit("[ctxgc: 6 lines that this edit replaced]", replace_all=False)


def test_a_line_with_a_name_that_only_it_holds_stays() -> None:
    short = without_old_text(edit(), lambda name: name == "load_0_3")
    marked = f"[ctxgc: 5 lines that this edit replaced]\n{line_of(0, 3)}"
    assert short == edit(marked)


def test_a_name_that_the_new_text_holds_keeps_no_line_of_the_old_one() -> None:
    short = without_old_text(edit(new="load_0_3()"), lambda name: name == "load_0_3")
    assert short == edit("[ctxgc: 6 lines that this edit replaced]", new="load_0_3()")


def test_every_old_text_of_many_edits_is_shortened() -> None:
    many = json.dumps({"path": "a.py", "edits": [{"old_str": OLD, "new_str": "1"}] * 2})
    short = json.loads(without_old_text(many, lambda _: False) or "")
    assert [each["old_str"] for each in short["edits"]] == [
        "[ctxgc: 6 lines that this edit replaced]"
    ] * 2


@pytest.mark.parametrize(
    "arguments",
    [
        edit(old="short"),
        edit(new=OLD * 9),
        "not json",
        "[" * 100_000,
        json.dumps({"content": OLD}),
        '{"old_string": "' + "a b " * 50 + '", "n": 1e999}',
    ],
    ids=["short", "saves too little", "broken", "deep", "no old text", "no JSON can say it"],
)
def test_what_saves_too_little_or_cannot_be_said_stays(arguments: str) -> None:
    assert without_old_text(arguments, lambda _: False) is None


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), min_size=2, max_size=12),
    st.frozensets(st.sampled_from([f"load_{p}_{n}" for p in range(3) for n in range(31)])),
    st.sampled_from(sorted(OLD_TEXT)),
)
def test_names_that_only_the_call_holds_stay_and_it_is_shorter(
    lines: list[tuple[int, int]], unique: frozenset[str], key: str
) -> None:
    given_ = json.dumps({key: "\n".join(line_of(*each) for each in lines), "other": 3})
    short = without_old_text(given_, unique.__contains__)
    if short is not None:
        assert len(short) <= (1 - LEAST_SAVING) * len(given_)
        held = Text(strings_of(short)).names
        assert Text(strings_of(given_)).names & unique <= held
        assert json.loads(short).keys() == json.loads(given_).keys()


def calls(session: Session) -> list[str]:
    parts = [p for m in session.history for p in m.parts if p.kind == "tool_call"]
    return [part.text for part in parts if part.name == "Edit"]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_call_is_shortened_before_it_is_sent_back(format_: Format) -> None:
    session = opened(plugin_config={"trim_calls": True})
    views = drive(session, LONG[:4], Agent(format_))
    (call,) = calls(session)
    assert json.loads(call)["old_string"] == "[ctxgc: 4 lines that this edit replaced]"
    assert views[-1][: len(views[-2])] == views[-2]
    assert faults(session) == []


def test_calls_are_left_alone_unless_that_is_asked_for() -> None:
    session = opened()
    drive(session, LONG)
    assert not any("edit replaced" in call for call in calls(session))


class Unlucky(Agent):
    """An agent whose edits fail."""

    def step(self, step: Step) -> tuple[list[Json], list[Json]]:
        said, back = super().step(step)
        if step[0] == "edit":
            back[0]["content"] = "Error: the text was not found in the file"
        return said, back


def test_an_edit_that_failed_is_left_alone() -> None:
    session = opened(plugin_config={"trim_calls": True})
    drive(session, LONG, Unlucky())
    assert len(calls(session)) > 3
    assert not any("edit replaced" in call for call in calls(session))


def test_a_call_beside_signed_thinking_is_left_alone() -> None:
    session, agent = opened(plugin_config={"trim_calls": True}), Agent("anthropic")
    session.extend(agent.begin(), format="anthropic")
    drive(session, [("read", 0, 0, 60)], agent)
    said, back = agent.step(("edit", 0, 3))
    said[0]["content"].insert(0, {"type": "thinking", "thinking": "so be it", "signature": "s"})
    session.extend([*said, *back], format="anthropic")
    assert session.messages()[-2] == said[0]


def test_the_whole_call_can_be_recalled() -> None:
    session = opened(plugin_config={"trim_calls": True})
    drive(session, LONG[:4])
    (segment,) = [s for s in session.segments() if s.tier == "stashed" and s.part == "tool_call"]
    assert "parse_0_3" in segment.text
    assert session.recall(segment.segment_id).text == segment.text
    assert calls(session) == [segment.text]
    assert faults(session) == []
