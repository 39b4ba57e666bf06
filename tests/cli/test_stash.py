"""`ctxgc stash list`, `search` and `show`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from ctxgc.cli.output import age, preview, printable
from ctxgc.cli.stores import tell_progress
from ctxgc.stores import Put, open_store
from tests.cli.stash_cases import KEY, STORE, make_session
from tests.stores.places import segment

Run = Callable[..., Result]


def rows(done: Result) -> list[list[str]]:
    return [line.split(None, 5) for line in done.stdout.splitlines()]


def data(done: Result) -> Any:
    assert done.exit_code == 0
    return json.loads(done.stdout)


def test_list_shows_the_sessions(run: Run) -> None:
    make_session().close()
    make_session(name="other").close()
    done = run("stash", "list")
    assert done.exit_code == 0
    assert [row[0] for row in rows(done)] == ["session", "other", "work"]
    found = data(run("stash", "list", "--json"))
    assert [(each["session"], each["checkpoints"]) for each in found] == [("other", 1), ("work", 1)]
    assert run("stash", "list", "--quiet").output == ""


def test_list_shows_the_segments_of_a_session_stashed_ones_first(run: Run) -> None:
    with make_session() as session:
        known = {s.segment_id: s for s in session.segments()}
    done = run("stash", "list", "--session", "work")
    assert rows(done)[0] == ["tier", "handle", "type", "tokens", "age", "line"]
    tiers = [row[0] for row in rows(done)[1:]]
    assert tiers == sorted(s.tier for s in known.values())
    assert "10d" in done.stdout
    found = data(run("stash", "list", "--session", "work", "--tier", "stashed", "--json"))
    assert {each["segment_id"] for each in found} == {
        s.segment_id for s in known.values() if s.tier == "stashed"
    }
    assert [each["tokens"] for each in found] == [known[e["segment_id"]].tokens for e in found]


def test_lists_and_hits_mask_keys_and_show_does_not(run: Run) -> None:
    make_session().close()
    done = run("stash", "search", "key", "--json")
    assert data(done)[0]["line"] == "The key is [secret:github-token]."
    assert KEY not in run("stash", "list", "--session", "work").output
    shown = run("stash", "show", data(done)[0]["handle"])
    assert shown.stdout == f"Why does it fail?\nThe key is {KEY}.\n"


def test_search_ranks_and_filters(run: Run) -> None:
    store = open_store(STORE)
    for name, kind, day in (("s1", "note", "01"), ("s2", "log", "02")):
        made = segment(f"apple {name}", name, type=kind, tags=[name], task_id=name,
                       file_path=f"{name}.py", created_at=f"2026-03-{day}T12:00:00Z",
                       tier="stashed" if name == "s1" else "working")  # fmt: skip
        store.commit("a", [Put("segments", name, made)])
    store.commit("b", [Put("segments", "s3", segment("apple apple"))])
    store.close()

    def keys(*options: str) -> list[str]:
        done = run("stash", "search", "apple", "--json", *options)
        return [each["segment_id"] for each in json.loads(done.stdout)]

    assert sorted(keys()) == ["s1", "s2", "s3"]
    assert keys("--limit", "1") == ["s3"]
    assert sorted(keys("--session", "a")) == ["s1", "s2"]
    assert keys("--type", "log") == ["s2"]
    assert keys("--tag", "s1", "--tag", "none") == ["s1"]
    assert keys("--task", "s2") == keys("--file", "s2.py") == keys("--tier", "working") == ["s2"]
    assert keys("--session", "a", "--before", "2026-03-02") == ["s1"]
    assert keys("--after", "2026-03-02T12:00:00") == ["s2"]


def test_a_search_that_finds_nothing_ends_with_1(run: Run) -> None:
    make_session().close()
    done = run("stash", "search", "unheard", "fjord")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "nothing found for 'unheard fjord'\n"
    for option, said in (("--quiet", ""), ("--json", "[]\n")):
        done = run("stash", "search", "unheard", "fjord", option)
        assert (done.exit_code, done.output) == (1, said)


def test_show_gives_whole_texts_lines_and_patterns(run: Run) -> None:
    with make_session() as session:
        hit = session.search("function_3_30", limit=1)[0]
    whole = run("stash", "show", hit.handle)
    assert whole.stdout == f"{hit.segment.text}\n"
    lines = hit.segment.text.split("\n")
    assert run("stash", "show", hit.handle, "--lines", "2-3").stdout.splitlines() == lines[1:3]
    assert run("stash", "show", hit.segment.segment_id, "--lines", "7").stdout == f"{lines[6]}\n"
    near = run("stash", "show", hit.handle, "--pattern", "FUNCTION_3_30").stdout.splitlines()
    assert near == lines[28:33]
    found = data(run("stash", "show", hit.handle, "--json", "--lines", "1"))
    assert (found["text"], found["session"], found["tier"]) == (lines[0], "work", "stashed")
    assert run("stash", "show", hit.handle, "--quiet").output == ""


def test_texts_that_no_encoding_has_are_shown_too(run: Run) -> None:
    store = open_store(STORE)
    store.commit("a\ud800", [Put("segments", "s1", segment("x\ud800y\x1b[2J", "s1"))])
    store.close()
    assert run("stash", "show", "s1").stdout_bytes == b"x\xed\xa0\x80y\x1b[2J\n"
    assert data(run("stash", "show", "s1", "--json"))["text"] == "x\ud800y\x1b[2J"
    assert "x\\xd800y\\x1b[2J" in run("stash", "search", "y").stdout
    assert "a\\xd800" in run("stash", "list").stdout
    assert [each["session"] for each in data(run("stash", "list", "--json"))] == ["a\ud800"]


def test_progress_is_told_to_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tell_progress("import", quiet=False)(1, 1)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    tell_progress("import", quiet=True)(1, 1)
    assert capsys.readouterr() == ("", "")
    for done in (1, 2):
        tell_progress("import", quiet=False)(done, 2)
    assert capsys.readouterr() == ("", "\rimport: 1 of 2\rimport: 2 of 2\n")


def test_an_id_that_several_sessions_have_asks_for_the_session(run: Run) -> None:
    make_session().close()
    make_session(name="other").close()
    done = run("stash", "show", "s-3")
    assert done.exit_code == 1
    assert done.stderr == (
        "error: 's-3' is in 2 sessions: other, work (next: choose one with --session)\n"
    )
    assert run("stash", "show", "s-3", "--session", "other").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "h-nothing"], "no segment with the handle 'h-nothing' (next: ctxgc search"),
        (["show", "s-3", "--lines", "x"], "--lines cannot be 'x' (next: for example 10-20)"),
        (["show", "s-3", "--lines", "5-2"], "--lines cannot be '5-2' (next: for example 10-20)"),
        (["list", "--session", "wrok"], "no session 'wrok' in json:"),
        (["search", "x", "--session", "wrok"], "(next: did you mean 'work'?)"),
        (["list", "--store", "sqlite:no.db"], "no store at no.db (next: the first prune"),
        (["list", "--store", "memory:"], "a memory: store ends with its process"),
        (["list", "--store", "jsn:x"], 'did you mean "json"?'),
    ],
)
def test_errors_are_one_line_with_the_next_step(
    run: Run, project: Path, arguments: list[str], says: str
) -> None:
    make_session().close()
    before = sorted(path.name for path in project.rglob("*"))
    done = run("stash", *arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in project.rglob("*")) == before


def test_the_environment_names_the_store(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    make_session("sqlite:my.db", "mine").close()
    monkeypatch.setenv("CTXGC_STORE", "sqlite:my.db")
    assert [each["session"] for each in data(run("stash", "list", "--json"))] == ["mine"]


def test_what_a_store_had_to_repair_is_told(run: Run, project: Path) -> None:
    make_session().close()
    path = project / "artifacts/context_stash.json"
    path.write_bytes(path.read_bytes().replace(b'{"session_id"', b'{"sessio', 1))
    done = run("stash", "list")
    assert done.exit_code == 0
    assert done.stderr.startswith("warning: ")
    assert "set aside as context_stash.json.damaged-1" in done.stderr


def test_a_preview_is_short_safe_and_near_the_words() -> None:
    assert preview("\n  \n one \ntwo") == "one"
    assert preview("one\nTwo", ["two"]) == "Two"
    assert preview("") == ""
    assert preview("\x1b[2Jgone\x07") == "\\x1b[2Jgone\\x07"
    assert preview("x" * 500) == "x" * 71 + "…"
    assert printable("a\tb\nc\x9b") == "a\tb\nc\\x9b"


def test_an_age_has_one_unit() -> None:
    assert age(None) == age("yesterday") == "-"
    assert age("2000-01-01T00:00:00").endswith("d")
    assert age("9999-01-01T00:00:00Z") == "0s"
