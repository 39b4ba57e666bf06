"""The minimal view: what stays when almost nothing fits."""

from __future__ import annotations

from typing import Any

from ctxgc.collector import bare_view, minimal_view, whole_groups
from ctxgc.core import Message
from ctxgc.wire import parse


def history(*messages: dict[str, Any]) -> list[Message]:
    return [parse(data, "openai", f"m{number}") for number, data in enumerate(messages)]


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def step(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    function = {"name": "bash", "arguments": "{}"}
    calls = [{"id": name, "type": "function", "function": function}]
    return (
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": name, "content": name},
    )


def ids(messages: list[Message]) -> list[str]:
    return [message.message_id for message in messages]


STORY = history(
    said("system", "rules"),  # 0
    said("user", "first"),  # 1
    *step("a"),  # 2, 3
    said("user", "second"),  # 4
    *step("b"),  # 5, 6
    *step("c"),  # 7, 8
    said("user", "third"),  # 9
    *step("d"),  # 10, 11
    *step("e"),  # 12, 13
)


def test_the_minimal_view_keeps_rules_first_and_last_request_and_the_last_two_steps() -> None:
    assert ids(minimal_view(STORY, ())) == ["m0", "m1", "m9", "m10", "m11", "m12", "m13"]


def test_the_bare_view_keeps_only_the_last_step() -> None:
    assert ids(bare_view(STORY, ())) == ["m0", "m1", "m9", "m12", "m13"]


def test_what_is_kept_stays_with_its_whole_group() -> None:
    assert ids(bare_view(STORY, {"m6"})) == ["m0", "m1", "m5", "m6", "m9", "m12", "m13"]
    assert ids(whole_groups(STORY, {"m3", "m4"})) == ["m2", "m3", "m4"]


def test_the_bare_view_keeps_the_last_error() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "bash", "input": {}}
    failed = {"type": "tool_result", "tool_use_id": "t1", "content": "boom", "is_error": True}
    story = [
        parse(data, "anthropic", f"m{number}")
        for number, data in enumerate(
            (
                said("user", "first"),
                {"role": "assistant", "content": [use]},
                {"role": "user", "content": [failed]},
                said("assistant", "hm"),
                said("user", "last"),
            )
        )
    ]
    assert ids(bare_view(story, ())) == ["m0", "m1", "m2", "m4"]


def test_an_empty_view_stays_empty() -> None:
    assert minimal_view([], ()) == bare_view([], ()) == []
