"""Likely keys in what comes in: marked, masked or refused, and never shown in events or errors."""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

import pytest

from ctxgc import GCConfig, Session
from ctxgc.errors import CtxgcError, MessageError
from ctxgc.session import RECALL_CALL, Event

CANARY = "ghp_" + "Q7w8E9r0T1y2U3i4O5p6A7s8D9f0G1h2J3k4"
NPM = "npm_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(number: int) -> dict[str, Any]:
    function = {"name": "bash", "arguments": f'{{"command": "cat env{number}"}}'}
    calls = [{"id": f"c{number}", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(number: int, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


def session(secrets: str, **keys: Any) -> tuple[Session, list[Event]]:
    """Return a session with this policy, and the events that it tells."""
    config = GCConfig(secrets=secrets, recent_messages=1, preserve_recent_turns=0, **keys)
    made = Session(8_000, config=config, store="memory:", recall_call=RECALL_CALL)
    told: list[Event] = []
    made.events(told.append)
    return made, told


def leaky_output() -> str:
    """Return a long output whose rare names stand in lines with keys."""
    lines = [f"GITHUB_TOKEN={CANARY} # deploy_robot_account", f"NPM_TOKEN={NPM}"]
    return "\n".join([*lines, *(f"plain line {n} of the output" for n in range(120))])


def fill(made: Session) -> None:
    """Let the output be the first of several, so that it may leave."""
    made.append(user("Look around"))
    for number in range(6):
        made.append(call(number))
        made.append(result(number, leaky_output() if number == 0 else f"done {number} " * 80))
    made.append({"role": "assistant", "content": "seen"})
    made.append(user("Go on"))


def found(told: list[Event]) -> list[dict[str, Any]]:
    return [event.data for event in told if event.kind == "secret_found"]


def test_a_likely_key_is_marked_with_a_tag_and_an_event() -> None:
    made, told = session("mark")
    (plain,) = made.append(user("nothing here"))
    (marked,) = made.append(user(f"use {CANARY} and {NPM}, then {CANARY}"))
    tags = {segment.segment_id: segment.tags for segment in made.segments()}
    assert tags == {plain: (), marked: ("secret:github-token", "secret:npm")}
    assert found(told) == [
        {"segment_id": marked, "rule": "github-token"},
        {"segment_id": marked, "rule": "npm"},
    ]


def test_marks_do_not_link_segments_and_find_them_again() -> None:
    made, _ = session("mark")
    made.append(user(f"first {CANARY}"))
    made.append(user(f"second {CANARY}"))
    hits = made.search("first second", filters={"tags": ["secret:github-token"]})
    assert sorted(hit.segment.text for hit in hits) == [f"first {CANARY}", f"second {CANARY}"]
    assert made.search("first", filters={"tags": ["secret:npm"]}) == []


def test_off_looks_for_nothing() -> None:
    made, told = session("off")
    made.append(user(f"use {CANARY}"))
    assert [segment.tags for segment in made.segments()] == [()]
    assert found(told) == []


@pytest.mark.parametrize("entry", ["append", "extend", "sync"])
def test_refuse_names_the_rule_and_the_part_and_changes_nothing(entry: str) -> None:
    made, told = session("refuse")
    made.append(user("hello"))
    before = (made.view(), made.usage(), made.segments(), len(told))
    bad = user(f"the key is {CANARY}")
    given = bad if entry == "append" else [user("hello"), bad]
    with pytest.raises(MessageError, match=r"part 1 \(text\) .*'github-token'") as caught:
        getattr(made, entry)(given)
    assert caught.value.details == {"rule": "github-token", "part": 1}
    assert CANARY not in str(caught.value.to_dict())
    assert (made.view(), made.usage(), made.segments(), len(told)) == before
    made.append({"role": "assistant", "content": "no harm done"})


def test_masked_tombstones_hold_no_key_and_the_stash_holds_it_whole() -> None:
    views = {}
    for policy in ("mark", "mask"):
        made, _ = session(policy)
        fill(made)
        made.collect(1_600)
        tombstone = str(made.view()[2]["content"])
        assert tombstone.startswith("[ctxgc: ")
        handle = tombstone.partition('handle="')[2].partition('"')[0]
        assert made.read(handle) == leaky_output()
        views[policy] = str(made.view())
    assert [key in views["mark"] for key in (CANARY, NPM)] == [True, True]
    assert [key in views["mask"] for key in (CANARY, NPM)] == [False, False]
    assert "GITHUB_TOKEN=[secret:github-token] # deploy_robot_account" in views["mask"]


def test_masked_lines_come_back_by_themselves_without_the_key() -> None:
    made, _ = session("mask", tombstone_names_percent=0, evacuate_keep_percent=0)
    fill(made)
    made.collect(1_500)
    made.append({"role": "assistant", "content": "ok"})
    assert "deploy_robot_account" not in str(made.view())
    made.append(user("what about deploy_robot_account?"))
    lines = str(made.messages()[-1]["content"])
    assert "GITHUB_TOKEN=[secret:github-token] # deploy_robot_account" in lines
    assert [key in str(made.view()) for key in (CANARY, NPM)] == [False, False]


def test_a_changed_configuration_counts_from_then_on() -> None:
    made, told = session("off")
    made.set_gc_plugin("gc_truncate", GCConfig(secrets="mark"))
    made.append(user(f"use {NPM}"))
    assert [data["rule"] for data in found(told)] == ["npm"]


def test_no_key_is_told_in_logs_errors_events_or_reprs(caplog: pytest.LogCaptureFixture) -> None:
    made, told = session("mark")
    with caplog.at_level(logging.DEBUG):
        fill(made)
        made.messages()
        results = [made.collect(0), made.manual_gc()]
        checkpoint = made.checkpoint("before")
        made.restore(checkpoint.checkpoint_id)
        errors = [*_errors(made)]
    spoken = [
        caplog.text, *map(repr, told), *map(repr, results), repr(made), repr(made.usage()),
        repr(made.config), repr(made.budget), repr(made.gc_history), repr(made.checkpoints()),
        *(f"{error} {error!r} {error.to_dict()}" for error in errors),
    ]  # fmt: skip
    assert len(errors) == 5
    assert [text for text in spoken if CANARY in text or NPM in text] == []


def _errors(made: Session) -> list[CtxgcError]:
    """Return what is raised when hands that hold a key do something wrong."""
    wrong = [
        lambda: made.append(result(99, CANARY)),
        lambda: made.append({"role": "robot", "content": CANARY}),
        lambda: made.extend([user("a"), {"role": "tool", "content": CANARY}]),
        lambda: made.restore("20260101T000000000000Z-00000000"),
        lambda: made.recall("h-aaaaaaaaaaaaaaaa"),
    ]
    caught = []
    for act in wrong:
        with pytest.raises(CtxgcError) as error:
            act()
        caught.append(error.value)
    return caught


def held(made: Session) -> str:
    """Return all that the newest checkpoint holds, its conversation unpacked."""
    shelf = made.inspect().checkpoints.shelf
    newest = shelf.get(made.checkpoints()[-1].checkpoint_id)
    docs = [
        base64.b64decode(doc["source"]).decode() if "source" in doc else doc["data"]
        for doc in newest.conversation_history
    ]
    return json.dumps([*docs, newest.to_dict()])


@pytest.mark.parametrize("as_bytes", [False, True])
@pytest.mark.parametrize(("secrets", "is_held"), [("off", True), ("mark", False), ("mask", False)])
def test_a_checkpoint_holds_no_key_and_a_restore_brings_it_back(
    secrets: str, is_held: bool, as_bytes: bool
) -> None:
    made, _ = session(secrets)
    first = user(f"The token is {CANARY}.")
    made.append(json.dumps(first).encode() if as_bytes else first, format="openai")
    fill(made)
    before = json.dumps(made.view())
    checkpoint = made.checkpoint("here")
    assert (CANARY in held(made)) is is_held
    made.collect(0)
    made.append(user("something else"))
    assert json.dumps(made.view()) != before
    made.restore(checkpoint.checkpoint_id)
    assert json.dumps(made.view()) == before


def test_a_key_in_an_edited_form_is_masked_in_a_checkpoint_only_if_configured_so() -> None:
    """The session may not have that form later, and what is only marked comes back as it was."""
    for secrets in ("mark", "mask"):
        made, _ = session(secrets)
        fill(made)
        made.collect(1_600)
        before = json.dumps(made.view())
        checkpoint = made.checkpoint("here")
        made.append(user("something else"))
        made.restore(checkpoint.checkpoint_id)
        assert json.dumps(made.view()) == before
        assert (CANARY in held(made)) is (CANARY in before)
        assert (CANARY in before) is (secrets == "mark")


def test_what_a_host_adds_to_a_checkpoint_is_masked_if_configured_so() -> None:
    for secrets in ("mark", "mask"):
        made, _ = session(secrets)
        fill(made)
        made.checkpoint("x", system_state={"token": CANARY}, task_queue=[f"use {CANARY}"])
        assert (CANARY in held(made)) is (secrets == "mark")
