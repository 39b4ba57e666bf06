"""A scripted model says its turns in order and takes them in every spelling."""

from __future__ import annotations

from typing import Any

import pytest

from ctxgc.errors import InputError
from ctxgc.testing import RecordedRequest, ScriptedModel, ToolCall, Turn
from tests.testing.builders import user

CALL = ToolCall("read", {"path": "a"})


def _request(body: dict[str, Any] | None = None) -> RecordedRequest:
    return RecordedRequest("openai", "/v1/chat/completions", body or {}, b"", {})


def test_turns_are_served_in_order_in_every_spelling() -> None:
    script = ["text", CALL, [CALL, CALL], Turn("both", (CALL,)), lambda _: "made"]
    model = ScriptedModel(script)
    assert [model.answer(_request()) for _ in script] == [
        Turn("text"),
        Turn(tool_calls=(CALL,)),
        Turn(tool_calls=(CALL, CALL)),
        Turn("both", (CALL,)),
        Turn("made"),
    ]
    assert model.turns_left == 0


def test_after_the_last_turn_comes_what_was_set_for_then() -> None:
    model = ScriptedModel(["first"], then=lambda request: str(request.body["n"]))
    said = [model.answer(_request({"n": n})).text for n in range(3)]
    assert said == ["first", "1", "2"]


def test_a_script_that_is_over_is_a_typed_error() -> None:
    with pytest.raises(InputError, match="request 1 arrived, the script has only 0 turns"):
        ScriptedModel().answer(_request())


@pytest.mark.parametrize("value", [[], ["a", "b"], (CALL, "x")])
def test_what_is_not_a_turn_is_a_typed_error(value: Any) -> None:
    with pytest.raises(InputError, match="is not a turn"):
        ScriptedModel([value]).answer(_request())


def test_arguments_are_an_object_or_its_text() -> None:
    assert CALL.arguments_text() == '{"path": "a"}'
    spelled = ToolCall("read", '{"n": 1e2}')
    assert spelled.arguments_text() == '{"n": 1e2}'
    assert spelled.arguments_object() == {"n": 100.0}


def test_an_input_text_is_one_user_message() -> None:
    request = RecordedRequest("responses", "/v1/responses", {"input": "hello"}, b"", {})
    assert request.messages == [user("hello")]
