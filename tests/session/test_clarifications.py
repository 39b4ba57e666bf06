"""Clarifications: a question to the user and its answer leave only under pressure."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxgc.budget import GCPolicy, InstructionSource
from ctxgc.session import Session
from ctxgc.session.clarifications import only_asks
from ctxgc.wire import parse
from tests.requirements import requirement
from tests.session.build import make
from tests.strategies.build import turn, words

PRESERVABLE, PARTIAL, EPHEMERAL = GCPolicy.PRESERVABLE, GCPolicy.PARTIAL, GCPolicy.EPHEMERAL


def says(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def policies(session: Session) -> list[GCPolicy]:
    """Return the policy of each message of the view."""
    entry = session.budget.get_entry(InstructionSource.CONVERSATION)
    assert entry is not None
    return [entry.children[message.message_id].gc_policy for message in session.history]


def asking(*names: str) -> list[dict[str, Any]]:
    """Return a message with these calls, and the answers."""
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for n, name in enumerate(names)
    ]
    results = [
        {"role": "tool", "tool_call_id": f"c{n}", "content": "PostgreSQL"}
        for n in range(len(names))
    ]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


@requirement("S2.clarifications.found", "S2.gc-budget.preservable-kinds")
def test_a_question_and_its_answer_are_preservable_and_leave_only_under_pressure() -> None:
    session = make(plugin="gc_budget", preserve_recent_turns=1, limit=3_000)
    session.extend(turn(0))
    session.append(says("user", "Set up a database."))
    session.append(says("assistant", "Which database do you want?\n- PostgreSQL\n- SQLite"))
    session.append(says("user", "PostgreSQL"))
    session.append(says("assistant", "It runs."))
    assert policies(session)[2:] == [PARTIAL, PRESERVABLE, PRESERVABLE, PARTIAL]
    for number in range(1, 8):
        session.extend(turn(number))
    session.collect(100)
    texts = [message.text() for message in session.history]
    assert "PostgreSQL" in texts
    assert "It runs." not in texts
    session.extend(
        [says("user", words(2_800)), says("assistant", "Noted."), says("user", "Go on.")]
    )
    session.collect(0)
    assert "PostgreSQL" not in [message.text() for message in session.history]


@pytest.mark.parametrize(
    "name", ["ask_user", "AskUserQuestion", "request_user_input", "mcp__chat__ask-user"]
)
def test_a_tool_that_asks_the_user_makes_a_clarification(name: str) -> None:
    session = make(plugin="gc_budget")
    session.extend([says("user", "Set up a database."), *asking(name)])
    assert policies(session)[1:] == [PRESERVABLE, PRESERVABLE]


def test_a_question_among_other_calls_is_no_clarification() -> None:
    session = make(plugin="gc_budget")
    session.extend([says("user", "Set up a database."), *asking("ask_user", "bash")])
    assert policies(session)[1:] == [EPHEMERAL] * 3


def test_in_the_anthropic_format_a_tool_that_asks_makes_a_clarification_too() -> None:
    session = make(plugin="gc_budget")
    call = {"type": "tool_use", "id": "t1", "name": "AskUserQuestion", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "PostgreSQL"}
    session.extend(
        [
            says("user", "Set up a database."),
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
        "anthropic",
    )
    assert policies(session)[1:] == [PRESERVABLE, PRESERVABLE]


def test_a_policy_by_hand_and_a_stricter_one_stay() -> None:
    session = make(plugin="gc_budget")
    session.append(says("assistant", "What shall I do?"))
    session.append(says("user", "Set up a database."))
    session.append(says("assistant", "Which one?"))
    session.set_policy(session.history[-1].message_id, EPHEMERAL)
    session.append(says("user", "PostgreSQL"))
    assert policies(session) == [PRESERVABLE, GCPolicy.LOCKED, EPHEMERAL, PRESERVABLE]


def test_the_key_of_the_configuration_switches_it_off() -> None:
    session = make(plugin="gc_budget", preserve_clarifications=False)
    session.extend([says("user", "Set up a database."), *asking("ask_user")])
    session.extend([says("assistant", "Which one?"), says("user", "PostgreSQL")])
    assert policies(session)[1:] == [EPHEMERAL, EPHEMERAL, PARTIAL, PARTIAL]


def test_a_long_answer_is_new_work_and_no_clarification() -> None:
    session = make(plugin="gc_budget", limit=9_000)
    session.extend([says("user", "Set up a database."), says("assistant", "Which one?")])
    session.append(says("user", words(1_000)))
    assert policies(session)[1:] == [PARTIAL, PARTIAL]


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Which database do you want?", True),
        ("Two questions:\n1. Which port?\n2. Which user?\nShall I go on?", True),
        ("**Which one?**", True),
        ("どれにしますか\uff1f", True),
        ("I fixed the bug. Shall I add a test?", False),
        ("Done.", False),
        ("", False),
        ("Which one?\n```\nrm -rf build\n```", False),
        ("Which of these do you want: " + "x" * 1_000 + "?", False),
    ],
)
def test_a_message_only_asks_if_every_sentence_is_a_question(text: str, asks: bool) -> None:
    assert only_asks(parse(says("assistant", text), "openai", "m")) is asks
    assert not only_asks(parse(says("user", text), "openai", "m"))


def test_a_message_with_a_call_does_more_than_ask() -> None:
    calls = asking("bash")[0] | {"content": "Which one?"}
    assert not only_asks(parse(json.loads(json.dumps(calls)), "openai", "m"))
