"""Reading runs from files and folders."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ctxgc.errors import InputError
from ctxgc.lab import Run, find_run, half_of, read_runs
from ctxgc.lab.runs import run_files
from ctxgc.testing import check_history
from tests.lab.builders import answer, result, run_of, user
from tests.wire.transcripts import made

ASKED = answer("look", path="a.py")
MESSAGES = [user("go"), ASKED, result(ASKED, "text"), answer("done")]
DATA = Path(__file__).parents[3] / "shared" / "data"


def line(name: str, **fields: Any) -> str:
    return json.dumps({"id": name, "messages": MESSAGES, **fields}) + "\n"


def test_each_line_is_a_run(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    times = [1.0, 2.0, 3.0, 4.0]
    file.write_text(line("a", group="g", source="s", times=times) + "\n" + line("b"), "utf-8")
    assert list(read_runs(file)) == [
        Run(id="a", group="g", source="s", messages=MESSAGES, times=times),
        Run(id="b", group="b", source="", messages=MESSAGES),
    ]


def test_a_run_has_what_its_host_made_of_it_when_the_next_one_continues_it(tmp_path: Path) -> None:
    summary = user("This session is being continued from a previous conversation that ran out.")
    after = [summary, user("on"), answer("done")]
    file = tmp_path / "runs.jsonl"
    lines = (
        line("a1", group="a"), line("a2", group="a", messages=after, meta={"tokens": 9_000}),
        line("a3", group="a"), line("b1", group="b", messages=after, meta={"tokens": 9_000}),
    )  # fmt: skip
    file.write_text("".join(lines), "utf-8")
    found = {run.id: run.compacted for run in read_runs(file)}
    assert found == {"a1": [summary, user("on")], "a2": [], "a3": [], "b1": []}
    assert [run.id for run in read_runs(file, 1_000)] == ["a2", "b1"]


def test_each_window_of_a_transcript_but_the_last_has_its_compaction(tmp_path: Path) -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "u2", "parentUuid": None}
    told = [
        _claude_line(0, "user", "go"),
        _claude_line(1, "assistant", [{"type": "text", "text": "done"}]),
        json.dumps({**boundary, "sessionId": "s", "timestamp": "2026-01-01T00:00:02Z"}) + "\n",
        _claude_line(3, "user", "A summary: you said go."),
        _claude_line(4, "assistant", [{"type": "text", "text": "on"}]),
    ]
    file = tmp_path / "session.jsonl"
    file.write_text("".join(told), "utf-8")
    assert [run.compacted for run in read_runs(file)] == [[user("A summary: you said go.")], []]


def test_a_folder_is_read_in_order_and_by_name(tmp_path: Path) -> None:
    (tmp_path / "two.dev.jsonl").write_text(line("2"), "utf-8")
    (tmp_path / "one.jsonl.gz").write_bytes(gzip.compress(line("1").encode()))
    (tmp_path / "twofold.jsonl").write_text(line("3"), "utf-8")
    (tmp_path / "sealed.bin").write_text("?", "utf-8")
    assert [run.id for run in read_runs(tmp_path)] == ["1", "2", "3"]
    assert [run.id for run in read_runs(tmp_path, name="two")] == ["2"]


def test_short_runs_are_passed_over_by_the_tokens_that_the_file_tells(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    told = (
        line("told", meta={"tokens": 9_000}) + line("counted") + line("short", meta={"tokens": 10})
    )
    file.write_text(told, "utf-8")
    assert [run.id for run in read_runs(file, 1_000)] == ["told"]
    assert [run.id for run in read_runs(file, 11)] == ["told", "counted"]


@pytest.mark.parametrize(
    ("text", "number"),
    [(line("a") + '{"id": 3}\n', 2), ('{"id": "a", "messages": [\n', 1), (line("a", times="x"), 1)],
)
def test_a_damaged_line_is_named(tmp_path: Path, text: str, number: int) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_text(text, "utf-8")
    with pytest.raises(InputError, match=f"runs.jsonl, line {number}") as raised:
        list(read_runs(file))
    assert raised.value.details == {"file": str(file), "line": number}


def test_half_a_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl.gz"
    file.write_bytes(gzip.compress((line("a") * 50).encode())[:-20])
    with pytest.raises(InputError, match="cannot be read"):
        list(read_runs(file))


@pytest.mark.parametrize("name", ["", "other"])
def test_a_place_without_runs_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no runs"):
        run_files(tmp_path, name)


def test_a_transcript_is_one_run_in_the_chat_form(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    blocks = [
        ("user", "go"),
        ("assistant", [{"type": "text", "text": "look"}]),
        (
            "assistant",
            [{"type": "tool_use", "id": "t1", "name": "work", "input": {"path": "a.py"}}],
        ),
        ("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "text"}]),
        ("assistant", [{"type": "text", "text": "done"}]),
    ]
    file.write_text("".join(_claude_line(n, *block) for n, block in enumerate(blocks)), "utf-8")
    (run,) = read_runs(file)
    assert [message["role"] for message in run.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert (run.id, run.group, run.messages[1]["content"]) == ("session/1", "session", "look")
    assert run.messages[2] == {"role": "tool", "tool_call_id": "t1", "content": "text"}
    assert run.times is not None
    assert [time - run.times[0] for time in run.times] == [0, 2, 3, 4]


def test_a_damaged_line_of_a_transcript_is_named(tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(
        _claude_line(0, "user", "go") + "{broken\n" + _claude_line(1, "user", "on"), "utf-8"
    )
    with pytest.raises(InputError, match="line 2"):
        list(read_runs(file))


def test_recorded_sessions_give_histories_that_a_provider_takes() -> None:
    if not DATA.is_dir():
        pytest.skip("the recorded sessions are not here")
    runs = list(read_runs(DATA / "claude_code_raw"))
    assert len(runs) >= 4
    assert [check_history(run.messages, complete=False) for run in runs] == [[]] * len(runs)


def _claude_line(number: int, role: str, content: Any) -> str:
    said = {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": "s",
        "isSidechain": False,
        "timestamp": f"2026-01-01T00:00:0{number}Z",
        "message": {
            "role": role,
            "content": content,
            "id": "m1" if number in (1, 2) else f"n{number}",
        },
    }
    return json.dumps(said) + "\n"


def test_an_answer_of_codex_is_one_message_with_all_its_calls(tmp_path: Path) -> None:
    steps = made.conversation(turns=2)
    files = {
        "rollout-a.jsonl": made.codex(steps),
        "claude.jsonl": made.claude_code(steps),
    }
    codex, claude = (
        _answers(made.write_lines(tmp_path / name, lines)) for name, lines in files.items()
    )
    assert codex == claude
    assert max(calls for _, calls in codex) == max(len(step.calls) for step in steps)


def _answers(file: Path) -> list[tuple[str | None, int]]:
    """Return what each answer of a run says, and how many calls it has."""
    (run,) = read_runs(file)
    answers = [each for each in run.messages if each["role"] == "assistant"]
    return [(each["content"], len(each.get("tool_calls", ()))) for each in answers]


RUNS = [run_of(user("hi"), name=name) for name in ("demo-1", "demo-10", "other/main")]


def test_an_exact_name_wins_over_names_that_hold_it() -> None:
    assert find_run("demo-1", RUNS).id == "demo-1"


def test_a_part_that_only_one_has_is_enough() -> None:
    assert find_run("main", RUNS).id == "other/main"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("demo", "several runs match 'demo' (use one of: demo-1, demo-10)"),
        ("dmo-10", "no run matches 'dmo-10' (use one of: demo-10, demo-1)"),
        ("", "no run matches '' (use one of: demo-1, demo-10, other/main)"),
    ],
)
def test_other_names_are_answered_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        find_run(name, RUNS)
    assert str(caught.value) == said


def test_no_runs_are_told() -> None:
    with pytest.raises(InputError, match="there are no runs"):
        find_run("x", [])


def test_a_group_is_in_the_same_half_for_ever() -> None:
    assert [half_of(f"group-{number}") for number in range(6)] == [
        "fit", "judge", "judge", "fit", "fit", "fit",
    ]  # fmt: skip
    share = sum(half_of(f"run/{number}") == "fit" for number in range(2_000)) / 2_000
    assert 0.45 < share < 0.55
