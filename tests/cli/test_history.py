"""`ctxgc history` tells what compactions removed, `ctxgc trace` where a phrase came from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.insight.test_session_past import talk
from tests.session_files import dumped

KEY = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"


@pytest.fixture(autouse=True)
def session(project: Path) -> Path:
    path = project / "session.jsonl"
    path.write_bytes(dumped(talk().lines))
    return path


def test_history_lists_compactions_and_what_the_last_one_removed(run: Run) -> None:
    done = run("history", "session.jsonl")
    assert done.exit_code == 0
    assert "Removed by compaction 1" in done.output
    assert "How fast is it? Stay under 40 ms." in done.output
    assert "/repo/src/m1.py" in done.output
    told = json.loads(run("history", "session.jsonl", "--json").output)
    assert [each["number"] for each in told["compactions"]] == [1]
    assert f"{told['compactions'][0]['tokens_removed']:,}" in done.output


def test_history_says_when_there_is_no_compaction_or_no_such_one(run: Run, project: Path) -> None:
    (project / "chat.json").write_text(json.dumps([{"role": "user", "content": "hi"}]))
    done = run("history", "chat.json")
    assert (done.exit_code, done.output) == (0, "ok: this session was never compacted\n")
    wrong = run("history", "session.jsonl", "--compaction", "2")
    assert wrong.exit_code == 1
    assert "1 compaction, so none is number 2" in wrong.output


def test_trace_says_who_said_it_first(run: Run) -> None:
    done = run("trace", "mean_time_ms: 12.5", "session.jsonl")
    assert done.exit_code == 0
    assert "It came from a result of Bash bench, line 14; still in the window." in done.output
    claimed = run("trace", "12.5ms, 3.2x faster", "session.jsonl").output
    assert "The model said it first, in its own words" in claimed
    assert "nowhere before" in claimed
    told = json.loads(run("trace", "12.5ms, 3.2x faster", "session.jsonl", "--json").output)
    assert [each["name"] for each in told["names"]] == ["12.5", "3.2"]


def test_trace_fails_when_nobody_said_it(run: Run) -> None:
    done = run("trace", "the user asks how slow it is", "session.jsonl")
    assert done.exit_code == 1
    assert "nobody said that in this session" in done.output
    assert "Summary: the user asks how fast it is." in done.output


def test_keys_are_never_printed(run: Run, session: Path) -> None:
    file = talk()
    file.lines[0]["message"]["content"] = f"Use {KEY} for it."
    session.write_bytes(dumped(file.lines))
    for words in (("history", "session.jsonl"), ("trace", "for it", "session.jsonl")):
        for form in ((), ("--json",)):
            assert KEY[-12:] not in run(*words, *form).output
