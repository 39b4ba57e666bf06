"""The invented agent: valid, repeatable, of any length, and true to its own files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.errors import InputError
from ctxgc.testing import check_history, make_session
from tests.examples import one_in

FORMATS = ["openai", "responses", "anthropic"]
OPTIONS = {
    "form": st.sampled_from(FORMATS),
    "seed": st.integers(0, 10**9),
    "messages": st.integers(1, 150),
    "thinking": st.booleans(),
    "parallel": st.booleans(),
}


@given(**OPTIONS)
def test_a_session_is_valid_at_any_length(
    form: str, seed: int, messages: int, thinking: bool, parallel: bool
) -> None:
    session = make_session(seed, messages, form, thinking=thinking, parallel=parallel)
    assert len(session.messages) == messages
    assert check_history(session.body(), form) == []


@given(**OPTIONS)
@one_in(5)
def test_the_same_seed_tells_the_same_story(
    form: str, seed: int, messages: int, thinking: bool, parallel: bool
) -> None:
    options = {"thinking": thinking, "parallel": parallel}
    one, two = (make_session(seed, messages, form, **options) for _ in range(2))
    assert json.dumps(one.messages) == json.dumps(two.messages)
    assert one.facts == two.facts


DIGEST = """
import hashlib, json
from ctxgc.testing import make_session
print(hashlib.sha256(json.dumps(make_session(11, 300).messages).encode()).hexdigest())
"""


def test_the_story_does_not_depend_on_the_process_that_tells_it() -> None:
    here = hashlib.sha256(json.dumps(make_session(11, 300).messages).encode()).hexdigest()
    for hash_seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        assert told.stdout.strip() == here


def test_another_seed_tells_another_story() -> None:
    assert make_session(1, 50).messages != make_session(2, 50).messages


def test_a_longer_session_starts_as_the_shorter_one() -> None:
    short, long = make_session(5, 100).messages, make_session(5, 400).messages
    assert long[:90] == short[:90]


@pytest.mark.parametrize("form", FORMATS)
def test_a_session_can_be_asked_for_in_tokens(form: str) -> None:
    session = make_session(3, format=form, tokens=20_000)
    size = sum(len(json.dumps(message)) for message in session.messages) / 4
    assert 18_000 < size < 32_000
    assert check_history(session.body(), form) == []


Called = tuple[str, dict[str, Any], str]


def _calls(messages: list[dict[str, Any]]) -> list[Called]:
    """Return every call of a chat history with its arguments and its output, in order."""
    outputs = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]), outputs[call["id"]])
        for message in messages
        for call in message.get("tool_calls", ())
    ]


def _tasks(messages: list[dict[str, Any]]) -> list[tuple[str, list[Called]]]:
    """Return what each user message asked for, with the calls that it led to."""
    starts = [n for n, message in enumerate(messages) if message["role"] == "user"]
    ends = [*starts[1:], len(messages)]
    spans = zip(starts, ends, strict=True)
    return [(messages[start]["content"], _calls(messages[start:end])) for start, end in spans]


def _numbered(listing: str) -> dict[int, str]:
    """Return the lines of a listing by their numbers."""
    lines = (line.partition("→") for line in listing.split("\n") if "→" in line)
    return {int(number): text for number, _, text in lines}


def _lines(text: str) -> dict[int, str]:
    return dict(enumerate(text.splitlines(), 1))


def _forget_broken(files: dict[str, str], asked: str) -> None:
    """Drop the files that someone else broke before the user asked."""
    tests = re.search(r"tests in tests/test_(\w+\.py) fail", asked)
    for path in list(files):
        if "went wrong last night" in asked or (tests and path.endswith(f"/{tests[1]}")):
            del files[path]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_read_is_what_the_edits_made_of_it(seed: int) -> None:
    files: dict[str, str] = {}
    compared = 0
    for asked, calls in _tasks(make_session(seed, 2_000).messages):
        _forget_broken(files, asked)
        for name, arguments, output in calls:
            path = arguments.get("file_path", "")
            if name == "Edit" and path in files:
                assert arguments["old_string"] in files[path]
                new = arguments["new_string"]
                files[path] = files[path].replace(arguments["old_string"], new, 1)
            if name == "Read" and "offset" not in arguments:
                files.setdefault(path, "\n".join(_numbered(output).values()))
            if name in ("Read", "Edit") and path in files:
                shown = _numbered(output)
                assert shown.items() <= _lines(files[path]).items()
                compared += 1
    assert compared > 50


def test_tests_fail_and_then_pass() -> None:
    runs = [
        (arguments["command"], "FAILURES" in output)
        for _, arguments, output in _calls(make_session(0, 600).messages)
        if "pytest" in arguments.get("command", "")
    ]
    turned = [
        target
        for (target, failed), (later, failed_later) in pairwise(runs)
        if target == later and failed and not failed_later
    ]
    assert len(turned) > 5


def test_a_session_has_parallel_calls_errors_todos_and_large_outputs() -> None:
    session = make_session(0, 1_000)
    calls = _calls(session.messages)
    assert {name for name, _, _ in calls} == {"Read", "Grep", "Edit", "Bash", "TodoWrite"}
    assert max(len(m.get("tool_calls", ())) for m in session.messages) >= 3
    assert max(len(output) for _, _, output in calls) > 8_000
    parts = [part for m in make_session(0, 600, "anthropic").messages for part in m["content"]]
    assert sum("is_error" in part for part in parts) > 5


def test_facts_are_needed_again_long_after_they_were_said() -> None:
    session = make_session(7, 4_000)
    needed = [(fact, place) for fact in session.facts for place in fact.needed]
    assert all(fact.text in json.dumps(session.messages[fact.born]) for fact in session.facts)
    assert all(place > fact.born for fact, place in needed)
    assert sum(place - fact.born > 300 for fact, place in needed) > 20


def test_ids_are_unique_unless_they_are_to_be_used_again() -> None:
    def ids(**options: Any) -> list[str]:
        messages = make_session(1, 100, **options).messages
        return [call["id"] for m in messages for call in m.get("tool_calls", ())]

    assert len(set(ids())) == len(ids())
    assert len(set(ids(reuse_ids=True))) <= 3
    assert check_history(make_session(1, 100, reuse_ids=True).messages) == []


@pytest.mark.parametrize(
    ("options", "field"),
    [({"format": "gemini"}, "format"), ({"messages": 0}, "messages"), ({"tokens": 0}, "messages")],
)
def test_impossible_wishes_are_input_errors(options: Any, field: str) -> None:
    with pytest.raises(InputError) as error:
        make_session(**options)
    assert error.value.details["field"] == field
