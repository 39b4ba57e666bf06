"""Evidence of death: by what right a result may leave."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxgc.collector import liveness, price
from ctxgc.collector.calls import CallEffect, Kind, read_call
from ctxgc.collector.liveness import (
    DEAF,
    ELSEWHERE,
    Clues,
    evidence,
    haunted,
    next_look,
    overdue,
)
from ctxgc.collector.reader import Item
from ctxgc.collector.worth import Census, whole
from ctxgc.core import Text
from tests.collector.agent import FIXED, HOW, LONG, Step, drive, opened, steps, view_of
from tests.examples import one_in

READ = read_call("Read", '{"file_path": "src/a.py"}')
EDIT = read_call("Edit", '{"file_path": "src/a.py"}')
TESTS = read_call("Bash", '{"command": "pytest"}')
CHECK = read_call("Bash", '{"command": "git status"}')


def result(kind: Kind = "view", call: CallEffect = READ, born: int = 1) -> Item:
    return Item("m", 0, Text(view_of(0, 0, 10)), kind=kind, call=call, born=born)


def why(item: Item, request: int, clues: Clues | None = None, census: Census | None = None) -> str:
    found, _ = evidence(item, clues or Clues(), census or Census(), HOW, request)
    return found or ""


@pytest.mark.parametrize("kind", ["shell", "search", "paths"])
def test_what_shows_no_file_is_held_for_its_own_time(kind: Kind) -> None:
    how = replace(HOW, work_hold=3)
    found = [evidence(result(kind, CHECK), Clues(), Census(), how, n)[0] for n in (1, 3, 4)]
    assert found == [None, None, "idle"]


def test_what_shows_a_file_through_a_shell_is_held_as_a_view_is() -> None:
    shown = read_call("Bash", '{"command": "cat src/a.py"}')
    assert why(result("shell_view", shown), HOW.hold) == ""
    assert why(result("shell_view", shown), HOW.hold + 1) == "idle"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("dossier", '{"subject": "ada"}'),
        ("mcp__cluster__get", '{"name": "ada"}'),
        ("bash", '{"command": "kubectl get deploy ada -o yaml"}'),
        ("bash", '{"command": "cat deploy/ada.yaml"}'),
        ("read_file", '{"path": "deploy/ada.yaml"}'),
    ],
)
def test_what_was_fetched_for_what_it_says_lives_as_long_as_the_request_for_it_runs(
    tool: str, given: str
) -> None:
    call, clues, how = read_call(tool, given), Clues(), replace(HOW, work_hold=3)
    item = result(call.kind, call, born=2)
    clues.user(1)
    assert evidence(item, clues, Census(), how, 500) == (None, 0)
    clues.user(499)
    found = [evidence(item, clues, Census(), how, request) for request in (500, 502, 503)]
    assert found == [(None, 0), (None, 2), ("idle", 3)]


def test_an_answer_to_the_same_call_takes_the_place_of_the_older_one() -> None:
    item = result("shell", CHECK)
    item.rerun_at = 4
    assert why(item, 5) == "rerun"


def test_a_view_is_held_while_nothing_speaks_against_it() -> None:
    assert why(result(), HOW.hold) == ""
    assert why(result(), HOW.hold + 1) == "idle"


def test_a_view_whose_file_was_named_again_is_held_from_then_on() -> None:
    clues = Clues()
    clues.call(READ, 5)
    assert why(result(), HOW.hold + 5, clues) == ""
    assert why(result(), HOW.hold + 6, clues) == "idle"


def test_a_view_whose_file_was_edited_dies_after_the_next_request() -> None:
    clues = Clues()
    clues.call(EDIT, 3)
    assert [why(result(), request, clues) for request in (4, 5)] == ["", "edited"]
    assert why(result(born=4), 5, clues) == ""


def test_a_check_and_a_word_of_the_user_count_as_idle_requests() -> None:
    clues = Clues()
    clues.call(TESTS, 2)
    assert [why(result(), request, clues) for request in (6, 7)] == ["", "idle"]
    clues.user(2)
    assert [why(result(), request, clues) for request in (3, 4)] == ["", "idle"]


def test_a_view_most_of_which_stands_elsewhere_dies_at_once() -> None:
    census, item = Census(), result()
    census.enter(whole(item.text), new=True)
    assert why(item, 2, census=census) == ""
    census.enter(whole(Text(view_of(0, 0, 8))), new=True)
    assert why(result(), 2, census=census) == "elsewhere"


def test_a_list_dies_when_its_own_tool_has_written_a_newer_one() -> None:
    clues, call = Clues(), CallEffect(kind="todo", tool="TodoWrite")
    old = result("todo", call)
    clues.write_list("TodoWrite", old.source)
    clues.write_list("update_plan", "n/0")
    assert why(old, 9, clues) == ""
    clues.write_list("TodoWrite", "n/1")
    assert why(old, 9, clues) == "todo"
    clues.write_list("TodoWrite", old.source)
    assert why(old, 9, clues) == "todo"
    clues.drop_list("n/1")
    assert why(old, 9, clues) == ""


def test_a_list_that_was_not_written_does_not_die() -> None:
    clues, old = Clues(), result("todo", CallEffect(kind="todo", tool="TodoWrite"))
    clues.write_list("TodoWrite", old.source)
    clues.drop_list(old.source)
    clues.write_list("TodoWrite", "n/1")
    assert why(old, 9, clues) == ""


@pytest.mark.parametrize("kind", ["shell", "other", "edited"])
def test_where_a_ghost_is_no_class_leaves_young(kind: str) -> None:
    item = result("shell", born=1)
    late = [haunted(item, kind, 0, HOW, delay=3, request=request)[0] for request in (2, 4, 5)]
    assert late == [None, None, kind]


def test_where_a_ghost_is_an_idle_view_is_held_longer() -> None:
    due = HOW.hold + 3
    found = [haunted(result(), "idle", idle, HOW, delay=3, request=99) for idle in (due - 1, due)]
    assert found == [(None, due - 4), ("idle", due - 3)]
    assert haunted(result(), None, 1, HOW, delay=3, request=99) == (None, 0)


def test_what_could_have_left_before_is_overdue() -> None:
    late = HOW.hold + 5
    shell = [overdue(result("shell", CHECK), Clues(), HOW, request) for request in (1, 2, 5)]
    assert shell == [0, 0, 3]
    assert [overdue(result(), Clues(), HOW, request) for request in (2, late)] == [0, 4]
    clues = Clues()
    clues.call(READ, late - 3)
    assert overdue(result(), clues, HOW, late) == 0
    assert overdue(result("todo"), Clues(), HOW, late) == 0


HAPPENINGS = st.lists(st.sampled_from(["read", "edit", "test", "user", "nothing"]), max_size=40)


@given(HAPPENINGS, st.integers(1, 12), st.integers(0, 8), st.integers(0, 5))
def test_a_view_that_is_not_looked_at_would_be_found_as_before(
    happenings: list[str], hold: int, after_check: int, bonus_from: int
) -> None:
    how = replace(HOW, hold=hold, after_check=after_check, bonus_from=bonus_from)
    clues, item, before = Clues(), result(), None
    for request, happening in enumerate(happenings, 2):
        rests = request < item.looks_at and clues.news <= item.heard
        found, _ = evidence(item, clues, Census(), how, request)
        assert not (rests and found != before)
        item.looks_at, item.heard = next_look(item, found, clues, how, request)
        before = found
        if happening in ("read", "edit"):
            item.wake()  # as `Opened` does, who knows the views of a file
        if happening in ("read", "edit", "test"):
            clues.call({"read": READ, "edit": EDIT, "test": TESTS}[happening], request)
        elif happening == "user":
            clues.user(request)


@one_in(6)
@given(steps())
def test_who_sleeps_would_decide_the_same_awake(work: list[Step]) -> None:
    session, judge = opened(plugin_config=FIXED), opened(plugin_config=FIXED)
    views = drive(session, [*work, *LONG])
    with (
        patch.object(price, "next_look", lambda *_: (0, DEAF)),
        patch.object(liveness, "_stands_elsewhere", _stands_elsewhere),
    ):
        expected = drive(judge, [*work, *LONG])
    assert views == expected


def _stands_elsewhere(item: Item, census: Census) -> bool:
    keys = [key for key in map(item.text.keys.__getitem__, item.shown) if key]
    return bool(keys) and sum(census.keys[key] > 1 for key in keys) >= ELSEWHERE * len(keys)
