"""`ctxgc checkpoint`: made, listed, shown, verified, restored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from ctxgc import Session
from ctxgc.stores import Put, open_store
from tests.cli.stash_cases import STORE, make_session

Run = Callable[..., Result]


def listed(run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("checkpoint", "list", "--json").stdout)
    return found


def test_a_checkpoint_is_made_and_listed(run: Run) -> None:
    make_session().close()
    done = run("checkpoint", "make", "--label", "before the refactoring")
    assert done.exit_code == 0
    assert [each["label"] for each in listed(run)] == ["first", "before the refactoring"]
    text = run("checkpoint", "list").stdout
    assert text.splitlines()[0].split() == ["checkpoint", "session", "age", "bytes", "label"]
    assert done.stdout == f"ok: {listed(run)[1]['checkpoint_id']} of session work\n"


@pytest.mark.parametrize(
    ("options", "triggers"),
    [
        ([], []),
        (["--next-operation", "large_merge"], ["risky_operation"]),
        (["--phase-changed", "--tasks-completed", "5"], ["phase_transition", "task_milestone"]),
    ],
)
def test_a_checkpoint_is_made_only_if_one_is_due(
    run: Run, options: list[str], triggers: list[str]
) -> None:
    make_session().close()
    late = json.loads(run("checkpoint", "make", "--if-due", "--json").stdout)
    made = json.loads(run("checkpoint", "make", "--if-due", "--json", *options).stdout)
    assert (made["triggers"], made["checkpoint_id"] is not None) == (triggers, bool(triggers))
    expected = [late["triggers"], *([triggers] if triggers else [])]
    assert [each["triggers"] for each in listed(run)[1:]] == expected
    assert late["triggers"] == ["time_interval"]


def test_where_none_is_due_a_line_says_so(run: Run) -> None:
    make_session().close()
    run("checkpoint", "make")
    done = run("checkpoint", "make", "--if-due")
    assert (done.exit_code, done.stdout) == (0, "ok: none is due in session work\n")


def test_restoring_gives_the_view_back(run: Run) -> None:
    with make_session() as session:
        before = session.view()
        session.append({"role": "user", "content": "And another thing."})
        session.append({"role": "assistant", "content": "Done."})
    name = listed(run)[0]["checkpoint_id"]
    done = run("checkpoint", "restore", name[:14])
    assert done.stdout == f"ok: session work restored to {name}: {len(before)} messages\n"
    with Session(store=STORE, session_id="work") as session:
        assert session.view() == before
        assert session.search("another thing")[0].text == "And another thing."


def test_a_checkpoint_is_shown_with_what_it_holds(run: Run) -> None:
    with make_session() as session:
        messages = len(session.view())
    name = listed(run)[0]["checkpoint_id"]
    text = run("checkpoint", "show", name).stdout
    assert text.startswith(f"checkpoint  {name}\nsession     work\n")
    assert f"{messages} messages" in text
    found = json.loads(run("checkpoint", "show", name, "--json").stdout)
    assert (found["session"], len(found["view"])) == ("work", messages)


def test_a_changed_bit_is_noticed(run: Run) -> None:
    make_session().close()
    done = run("checkpoint", "verify")
    assert (done.exit_code, done.stdout) == (0, "ok: 1 of 1 checkpoint verified\n")
    store = open_store(STORE)
    ((key, doc),) = store.load("work", "checkpoints")
    text = json.dumps(doc)
    place = text.index("Why does it fail?") if "Why does it fail?" in text else len(text) // 2
    flipped = json.loads(text[:place] + ("x" if text[place] != "x" else "y") + text[place + 1 :])
    store.commit("work", [Put("checkpoints", key, flipped)])
    store.close()
    done = run("checkpoint", "verify", key)
    assert done.exit_code == 1
    assert done.stderr.startswith(f"warning: {key}: ")
    assert done.stdout == "ok: 0 of 1 checkpoint verified\n"
    assert list(json.loads(run("checkpoint", "verify", "--json").stdout)["damaged"]) == [key]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "none"], "there is no checkpoint 'none' (next: ctxgc checkpoint list"),
        (["restore", "2"], "2 checkpoints begin with '2'"),
        (["make"], "the store has 2 sessions (next: choose one with --session"),
        (["list", "--session", "wrok"], "no session 'wrok'"),
        (["list", "--store", "json:none.json"], "there is no store at none.json"),
    ],
)
def test_errors_are_one_line(run: Run, arguments: list[str], says: str) -> None:
    make_session().close()
    make_session(name="other").close()
    done = run("checkpoint", *arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
