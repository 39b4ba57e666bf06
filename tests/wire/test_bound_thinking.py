from __future__ import annotations

import pytest

from ctxgc import wire
from tests.wire.talk import calls, parsed, results, says, thinks, user

ANSWER = {"type": "text", "text": "done"}


@pytest.mark.parametrize(
    "model",
    [
        "claude-fable-5-1",
        "claude-opus-5-5-20260901",
        "eu.anthropic.claude-sonnet-5.5",
        "claude-haiku-6",
        "claude-sonnet-latest",
        "my-deployment",
        "",
    ],
)
def test_newer_models_and_those_that_may_be_one_bind_thinking_to_what_stands_before_it(
    model: str,
) -> None:
    assert wire.binds_thinking(model)


@pytest.mark.parametrize(
    "model",
    [
        "claude-fable-5",
        "claude-opus-4-6",
        "claude-sonnet-5-20260101",
        "claude-3-7-sonnet",
        "anthropic.claude-v2:1",
        "claude-instant-1.2",
    ],
)
def test_other_models_do_not(model: str) -> None:
    assert not wire.binds_thinking(model)


def test_thinking_is_stripped_from_the_edit_on_and_nothing_else_changes() -> None:
    thought = [{"role": "assistant", "content": [thinks(), ANSWER]}]
    call = [{"role": "assistant", "content": [thinks(), *calls("anthropic", "a")[0]["content"]]}]
    alone = [{"role": "assistant", "content": [thinks()]}]
    before = parsed(
        "anthropic", user(), thought, user(), call, results("anthropic", "a"), alone, thought
    )
    after = wire.strip_bound_thinking(before, 2)
    assert after[:3] == before[:3]
    assert wire.render(after[3:]) == [
        *calls("anthropic", "a"), *results("anthropic", "a"),
        {"role": "assistant", "content": [ANSWER]},
    ]  # fmt: skip
    assert wire.validate(after, "anthropic") == []


def test_messages_without_thinking_are_the_same_objects() -> None:
    before = parsed("anthropic", user(), says(), user())
    assert all(a is b for a, b in zip(before, wire.strip_bound_thinking(before, 0), strict=True))


def test_reasoning_of_openai_is_not_bound() -> None:
    reasoning = [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}]
    history = parsed("responses", user(), reasoning, says())
    assert wire.strip_bound_thinking(history, 0) == history
