"""`ctxgc diff`: two transcripts, or points in the life of a session."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.cli.stash_cases import make_session
from tests.session_files import all_files, chat, dumped

Run = Callable[..., Result]


def test_the_same_history_has_no_difference(run: Run) -> None:
    for name, data in all_files().items():
        Path(name).write_bytes(data)
        done = run("diff", name, name)
        assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "  no difference")
    assert run("diff", "chat.json", "chat.jsonl").exit_code == 0


def test_what_left_came_and_changed_is_told_apart(
    run: Run, write: Callable[[str, Any], Path]
) -> None:
    before = chat(1)
    after = [*before[:-2], {"role": "user", "content": "Something else."}]
    after[3] = {**after[3], "content": "[gone]"}
    write("a.jsonl", dumped(before).decode())
    write("b.jsonl", dumped(after).decode())
    done = run("diff", "a.jsonl", "b.jsonl", "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert [(x["change"], x["part"], x["line"]) for x in found["differences"]] == [
        ("changed", "tool result", "[gone]"),
        ("left", "assistant", "All green."),
        ("left", "user", "Good. Now the docs."),
        ("came", "user", "Something else."),
    ]
    assert found["a"]["tokens"] - found["b"]["tokens"] == sum(
        x["tokens_before"] - x["tokens_after"] for x in found["differences"]
    )
    text = run("diff", "a.jsonl", "b.jsonl").stdout
    assert text.splitlines()[-1] == "  2 left, 1 came, 1 changed"
    assert run("diff", "a.jsonl", "b.jsonl", "--quiet").output == ""


def test_points_of_a_stored_session_can_be_compared(run: Run) -> None:
    with make_session() as session:
        (info,) = session.checkpoints()
        session.append({"role": "user", "content": "And another thing."})
    now = "session:work"
    assert run("diff", now, now).exit_code == 0
    since = run("diff", f"checkpoint:{info.checkpoint_id[:12]}", now)
    assert since.exit_code == 1
    before = json.loads(run("diff", "collection:1", now, "--json").stdout)
    assert before["a"]["tokens"] > before["b"]["tokens"]
    changed = [x for x in before["differences"] if x["change"] == "changed"]
    assert changed
    assert all(x["line"].startswith("[ctxgc:") for x in changed)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["session:wrok", "session:work"], "no session 'wrok'"),
        (["checkpoint:none", "session:work"], "there is no checkpoint 'none'"),
        (["collection:x", "session:work"], "collection 'x' is not a number"),
        (["collection:99", "session:work"], "the view before collection 99 is not known"),
        (["nothing.jsonl", "session:work"], "nothing.jsonl cannot be read"),
    ],
)
def test_errors_are_one_line(run: Run, names: list[str], says: str) -> None:
    make_session().close()
    done = run("diff", *names)
    assert (done.exit_code, done.stdout) == (1, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_with_several_sessions_one_must_be_named(run: Run) -> None:
    make_session().close()
    make_session(name="other").close()
    assert "the store has 2 sessions" in run("diff", "collection:1", "session:work").stderr
    assert run("diff", "collection:1", "session:work", "--session", "work").exit_code == 1
