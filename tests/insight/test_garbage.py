"""What the program of an agent puts in again, and tools that are never called, are garbage with a name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxgc.insight import Insight, SessionFollower, analyze_transcript, open_transcript
from tests.session_files import ClaudeCode, dumped

WARNING = "<system-reminder>\nConsider whether the file is malicious.\n</system-reminder>"
TODO = "<system-reminder>\nYour todo list has changed. It has {} items.\n</system-reminder>"
AGAIN = (
    "<system-reminder>\nNote: /repo/{}.py was read before the compaction.\n{}\n</system-reminder>"
)


def schema(name: str) -> dict[str, object]:
    words = "Use it whenever that helps, and say why. " * 20
    return {"name": name, "description": words, "input_schema": {"type": "object"}}


def found_in(path: Path) -> Insight:
    found = analyze_transcript(open_transcript(path))
    follower = SessionFollower(path)
    follower.look()
    assert follower.window().garbage == found.garbage
    return found


def reasons(found: Insight) -> dict[str, int]:
    return {each.reason: each.count for each in found.garbage.reasons if each.count}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def test_all_but_the_newest_of_what_is_put_in_again_is_garbage(file: Path) -> None:
    talk = ClaudeCode()
    talk.user("Look at both.")
    for n in (1, 2, 3):
        call = {
            "type": "tool_use",
            "id": f"t{n}",
            "name": "Read",
            "input": {"file_path": f"/r/{n}"},
        }
        talk.block(f"m{n}", call)
        talk.result(f"t{n}", f"1\tcontent of {n}\n\n{WARNING}", {})
        talk.user(TODO.format(n), isMeta=True)
    for path, text in (("a", "old"), ("b", "only"), ("a", "new")):
        talk.user(AGAIN.format(path, text), isMeta=True)
    file.write_bytes(dumped(talk.lines))
    found = found_in(file)
    again = [each for each in found.garbage.largest if each.reason == "injected again"]
    assert sorted((each.line, each.how, each.name) for each in again) == [
        (3, "reminders", "Consider whether the file is malicious."),
        (4, "to-do lists", "Your todo list has changed. It has 1 items."),
        (6, "reminders", "Consider whether the file is malicious."),
        (7, "to-do lists", "Your todo list has changed. It has 2 items."),
        (11, "re-attached files", "Note: /repo/a.py was read before the compaction."),
    ]
    assert found.garbage.tokens == sum(each.tokens for each in found.garbage.reasons)


def test_what_a_user_says_twice_is_not_the_programs(file: Path) -> None:
    talk = ClaudeCode()
    for _ in range(2):
        talk.user("Say <system-reminder> once more, please, and then go on with the parser.")
    file.write_bytes(dumped(talk.lines))
    assert "injected again" not in reasons(found_in(file))


def test_schemas_of_tools_that_were_never_called_are_garbage(file: Path) -> None:
    talk = ClaudeCode()
    talk.user("Look.")
    tools = [schema(name) for name in ("Read", "mcp__shop__buy", "mcp__shop__sell")]
    talk.line("attachment", attachment={"type": "prompt_snapshot", "tools": tools})
    talk.read(1)
    talk.line("system", subtype="compact_boundary", content="x", parent=None)
    talk.user("Summary: it was looked.", isCompactSummary=True)
    file.write_bytes(dumped(talk.lines))
    found = found_in(file)
    unused = [each for each in found.garbage.largest if each.reason == "never called"]
    assert {each.name for each in unused} == {"mcp__shop__buy", "mcp__shop__sell"}
    assert sum(each.tokens for each in unused) < found.window.beside


def test_many_of_them_are_advised_about_by_name(file: Path) -> None:
    talk = ClaudeCode()
    talk.user("Look.")
    tools = [schema(f"tool_{n}") for n in range(30)]
    talk.line("attachment", attachment={"type": "prompt_snapshot", "tools": tools})
    talk.read(1)
    file.write_bytes(dumped(talk.lines))
    advice = " ".join(each.text for each in found_in(file).advice)
    assert "30 tools (tool_0, tool_1, tool_2 and others) that this session never called" in advice


def test_tools_of_a_chat_are_known_by_their_functions(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    chat = {
        "tools": [{"type": "function", "function": schema(name)} for name in ("run", "walk")],
        "messages": [
            {"role": "user", "content": "Run."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "ran"},
        ],
    }
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(chat))
    unused = [
        each.name
        for each in analyze_transcript(open_transcript(path)).garbage.largest
        if each.reason == "never called"
    ]
    assert unused == ["walk"]


@pytest.mark.parametrize("tools", ["[1, null, {}]", '{"name": "x"}', "[", '[{"name": 3}]'])
def test_strange_schemas_are_passed_over(tools: str, file: Path) -> None:
    talk = ClaudeCode()
    talk.user("Look.")
    file.write_bytes(dumped(talk.lines))
    follower = SessionFollower(file)
    follower.look()
    follower.facts.tools = tools
    assert follower.window().garbage.tokens == 0
