"""A message is described by the call that it makes or answers."""

from __future__ import annotations

import pytest

from ctxgc.lab.explanation import described
from tests.lab.making import answer, result, run_of, user


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ({"file_path": "src/a.py", "limit": 3}, "src/a.py"),
        ({"command": "make\n  test"}, "make test"),
        ({"value": "x"}, '{"value": "x"}'),
        ({"pattern": "p" * 200}, "p" * 87 + "..."),
    ],
)
def test_a_call_and_its_result_have_the_same_target(
    arguments: dict[str, object], target: str
) -> None:
    asked = answer("look", **arguments)
    run = run_of(user("go"), asked, result(asked, "text"))
    assert described(run, 1) == ("assistant", "work", target)
    assert described(run, 2) == ("tool", "work", target)


@pytest.mark.parametrize("arguments", ["{not json", "[1, 2]"])
def test_arguments_that_are_no_object_stand_as_they_are(arguments: str) -> None:
    asked = answer("look", x=1)
    asked["tool_calls"][0]["function"]["arguments"] = arguments
    assert described(run_of(user("go"), asked), 1) == ("assistant", "work", arguments)


def test_plain_text_is_its_own_target() -> None:
    assert described(run_of(user("please\nhelp")), 0) == ("user", "", "please help")


def test_a_result_of_a_call_that_was_never_made_has_no_tool() -> None:
    lost = {"role": "tool", "tool_call_id": "gone", "content": "text"}
    assert described(run_of(user("go"), lost), 1) == ("tool", "", "text")


def test_of_calls_with_the_same_id_the_nearest_counts() -> None:
    first, second = answer("look", path="old"), answer("look", path="new")
    run = run_of(user("go"), first, result(first, "1"), second, result(second, "2"))
    assert described(run, 4) == ("tool", "work", "new")
