"""`ctxgc prune` and `ctxgc undo`, on session files of every kind."""

from __future__ import annotations

import gzip
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from ctxgc import validate
from ctxgc.agents import install
from ctxgc.session import HANDLE
from ctxgc.wire.transcripts import open_writable
from tests.reported_files import BESIDE, reported_claude_code
from tests.session_files import OTHER, SESSION, all_files
from tests.wire.transcripts import made

Run = Callable[..., Result]
FILES = all_files()
CLAUDE = f"{SESSION}.jsonl"
names = pytest.mark.parametrize("name", sorted(FILES))


def put(name: str, folder: Path = Path()) -> Path:
    """Write a session file as if its agent had ended a while ago."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        FILES[name.removesuffix(".gz")] if name in FILES else gzip.compress(FILES[name[:-3]])
    )
    rest(path)
    return path


def rest(path: Path) -> None:
    past = time.time() - 60
    os.utime(path, (past, past))


@names
def test_a_dry_run_shows_the_plan_and_writes_nothing(run: Run, project: Path, name: str) -> None:
    path = put(name)
    done = run("prune", name)
    assert done.exit_code == 0
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["tokens", "action", "what", "why"]
    assert any("evacuate" in row and "superseded" in row for row in rows)
    assert " ".join(rows[-2:]) == (
        "dry run, nothing was written: -o FILE writes a pruned copy, --in-place changes the session"
    )
    assert [each.name for each in project.iterdir()] == [name]
    assert path.read_bytes() == FILES[name]


def test_paths_are_those_in_the_project_and_cut_so_that_the_file_is_seen(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    steps = made.conversation(turns=12, lines=60)
    for name, where in (("in.jsonl", made.PROJECT), ("out.jsonl", "/elsewhere")):
        rest(made.write_lines(project / name, made.claude_code(steps, project=where)))
    inside, outside = (run("prune", name).stdout for name in ("in.jsonl", "out.jsonl"))
    assert "read of src/cart.py  " in inside
    assert "the edit of src/cart.py" in " ".join(inside.split())
    assert made.PROJECT not in inside
    assert "read of /home/…/src/prices.py  " in outside
    assert "the edit of /home/ada/sho…s/test_cart.py, " in " ".join(outside.split())
    assert made.PROJECT in run("prune", "in.jsonl", "--json").stdout


def test_without_a_name_it_is_the_newest_session_of_this_project(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project / "claude"))
    path = put(CLAUDE, project / "claude" / "projects" / "here")
    text = path.read_text("utf-8")
    (worked_in,) = set(re.findall(r'"cwd": ?"([^"]+)"', text))
    path.write_text(text.replace(f'"{worked_in}"', f'"{project}"'), encoding="utf-8")
    rest(path)
    assert run("prune", "--json").stdout == run("prune", str(path), "--json").stdout


@names
def test_a_copy_is_a_valid_session_of_the_same_kind(run: Run, project: Path, name: str) -> None:
    put(name)
    done = run("prune", name, "-o", "pruned/", "--json")
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    copy = open_writable(project / report["written"]["file"])
    assert copy.kind == report["kind"]
    assert copy.session_id == report["written"]["session_id"]
    assert validate([entry.data for entry in copy.entries], copy.format) == []
    assert report["tokens_after"] <= report["target"] < report["tokens_before"]
    assert (project / name).read_bytes() == FILES[name]
    handle = report["segments"][0]["handle"]
    shown = run("show", handle, "--json")
    assert json.loads(shown.stdout)["tokens"] == report["segments"][0]["tokens"]


def recalls(path: Path) -> set[str]:
    """Return the tools that a pruned session tells its reader to call."""
    return set(re.findall(r'(\w+)\(handle=\\*"[hs]-', path.read_text(encoding="utf-8")))


@names
def test_tombstones_name_the_tool_as_the_installed_agent_knows_it(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HOME", str(project / "home"))
    for agent in ("claude-code", "codex"):
        install(agent)
    put(name)
    done = run("prune", name, "-o", "pruned.jsonl", "--json")
    tool = "mcp__ctxgc__context_recall" if SESSION in name else None
    assert json.loads(done.stdout)["recall"] == tool
    assert recalls(project / "pruned.jsonl") == {tool} - {None}


@names
def test_without_a_server_no_tombstone_names_a_handle(run: Run, project: Path, name: str) -> None:
    put(name)
    done = run("prune", name, "-o", "pruned.jsonl")
    text = (project / "pruned.jsonl").read_text(encoding="utf-8")
    assert "[ctxgc: " in text
    assert (recalls(project / "pruned.jsonl"), HANDLE.findall(text)) == (set(), [])
    agent = {"claude_code": "claude-code", "codex": "codex"}.get(open_writable(project / name).kind)
    said = f"{agent} has no server of ctxgc, so tombstones name no handle: `ctxgc install {agent}`"
    assert (said in " ".join(done.stdout.split())) is (agent is not None)
    run("prune", name, "-o", "named.jsonl", "--recall", "my_recall")
    assert recalls(project / "named.jsonl") == {"my_recall"}


def test_a_copy_is_named_as_its_agent_looks_for_it(run: Run, project: Path) -> None:
    put(CLAUDE)
    run("prune", CLAUDE, "-o", ".")
    (new,) = [path for path in project.glob("*.jsonl") if path.name != CLAUDE]
    assert open_writable(new).session_id == new.stem != SESSION
    run("prune", CLAUDE, "-o", f"{OTHER}.jsonl")
    assert open_writable(project / f"{OTHER}.jsonl").session_id == OTHER
    rollout = f"rollout-2026-03-02T09-00-00-{SESSION}.jsonl"
    put(rollout)
    run("prune", rollout, "-o", "codex/")
    (new,) = (project / "codex").iterdir()
    assert new.name == rollout.replace(SESSION, str(open_writable(new).session_id))


def test_a_copy_says_how_to_go_on(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project / "claude"))
    put(CLAUDE)
    done = run("prune", CLAUDE, "-o", f"{OTHER}.jsonl")
    assert f"ok: wrote {OTHER}.jsonl\n" in done.stdout
    assert f"stashed as session claude-code-{SESSION}" in done.stdout
    folder = project / "claude/projects/-repo"
    steps = (
        f"mkdir -p {folder}",
        f"cp {OTHER}.jsonl {folder}/{OTHER}.jsonl",
        "cd /repo",
        f"claude --resume {OTHER}",
    )
    assert done.stdout.endswith(f"  to resume the copy:\n  $ {' && '.join(steps)}\n")
    folder.mkdir(parents=True)
    again = run("prune", CLAUDE, "-o", f"{folder}/")
    assert f"$ cd /repo && claude --resume {next(folder.iterdir()).stem}\n" in again.stdout


def test_an_agent_that_recalls_from_another_store_is_warned_of(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project / "home"))
    put(CLAUDE)
    assert run("prune", CLAUDE).stderr == ""
    install("claude-code", scope="project")
    assert run("prune", CLAUDE).stderr == ""
    url = f"sqlite:{project}/mine.sqlite"
    install("claude-code", scope="project", store=url)
    assert run("prune", CLAUDE).stderr == (
        f"warning: claude-code recalls from another store (next: add --store {url})\n"
    )
    assert run("prune", CLAUDE, "--quiet").stderr == ""
    named = run("prune", CLAUDE, "-o", "copy.jsonl", "--store", "sqlite:mine.sqlite")
    assert (named.exit_code, named.stderr) == (0, "")


@names
@pytest.mark.usefixtures("wide")
def test_in_place_and_back_byte_for_byte(run: Run, project: Path, name: str) -> None:
    path = put(name)
    done = run("prune", name, "--in-place")
    assert done.exit_code == 0
    assert done.stdout.endswith(f"\n  $ ctxgc undo {name}\n")
    assert len(path.read_bytes()) < len(FILES[name])
    assert open_writable(path).session_id == (SESSION if SESSION in name else None)
    assert run("undo", name).stdout.startswith(f"ok: restored {name} to its state before")
    assert path.read_bytes() == FILES[name]
    done = run("undo", name)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: there is nothing to undo for {name} (next: ")


def test_packed_sessions_stay_packed(run: Run, project: Path) -> None:
    path = put("chat.jsonl.gz")
    before = path.read_bytes()
    run("prune", "chat.jsonl.gz", "--in-place")
    assert len(gzip.decompress(path.read_bytes())) < len(FILES["chat.jsonl"])
    rest(path)
    run("undo", "chat.jsonl.gz")
    assert path.read_bytes() == before
    run("prune", "chat.jsonl.gz", "-o", "copy.jsonl.gz")
    assert gzip.decompress((project / "copy.jsonl.gz").read_bytes()).startswith(b'{"role":"system"')


def test_sessions_are_found_by_id_and_undone_without_a_name(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project / "home"))
    monkeypatch.setenv("CODEX_HOME", str(project / "codex"))
    path = put(CLAUDE, project / "home" / "projects" / "-repo")
    assert run("prune", SESSION[:8], "--in-place").exit_code == 0
    assert path.read_bytes() != FILES[CLAUDE]
    done = run("undo", "--json")
    assert json.loads(done.stdout)["file"] == str(path)
    assert path.read_bytes() == FILES[CLAUDE]
    for words in (("prune", "latest"), ("prune", "latest", "--in-place"), ("undo", "latest")):
        refused = run(*words)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert refused.stderr == (
            "error: no session of this project was found "
            f"(next: name one, the newest of all is {SESSION}; or go to its project)\n"
        )
    assert path.read_bytes() == FILES[CLAUDE]


def test_a_file_being_written_is_refused_and_stays(run: Run, project: Path) -> None:
    path = put(CLAUDE)
    with path.open("ab"):
        done = run("prune", CLAUDE, "--in-place")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "has it open (next: stop the agent first, or write a copy with -o)" in done.stderr
    os.utime(path)
    done = run("prune", CLAUDE, "--in-place", "--json")
    assert json.loads(done.stdout)["error"]["code"] == "transcript_busy"
    assert [each.name for each in project.iterdir()] == [CLAUDE]


def test_options_choose_target_and_strategy(run: Run) -> None:
    put(CLAUDE)

    def after(*options: str) -> tuple[int, str]:
        report = json.loads(run("prune", CLAUDE, "--json", *options).stdout)
        return report["target"], report["strategy"]

    assert after("--target", "20k") == (20_000, "gc_mark_sweep")
    assert after("--target", "10%", "--context-limit", "100000") == (10_000, "gc_mark_sweep")
    assert after("--strategy", "gc_truncate", "--target", "20k")[1] == "gc_truncate"


def test_the_window_is_that_of_the_model_unless_it_is_given(run: Run, project: Path) -> None:
    (project / CLAUDE).write_bytes(reported_claude_code(0.8))
    wanted = ("prune", CLAUDE, "--target", "50%", "--json")
    first = json.loads(run(*wanted).stdout)
    given = json.loads(run(*wanted, "--context-limit", "1000000").stdout)
    larger = reported_claude_code(0.8).replace(b"claude-x", b"claude-x[1m]")
    (project / CLAUDE).write_bytes(larger)
    known = json.loads(run(*wanted).stdout)
    assert [each["target"] for each in (first, given, known)] == [100_000, 500_000, 500_000]


def test_totals_name_what_stands_beside_the_messages(run: Run, project: Path) -> None:
    (project / CLAUDE).write_bytes(reported_claude_code(0.8))
    report = json.loads(run("prune", CLAUDE, "--json").stdout)
    before, beside = report["tokens_before"], report["beside"]
    said = f"{before:,}  tokens, {beside:,} of them not in the transcript"
    assert said in run("prune", CLAUDE).stdout
    assert beside == pytest.approx(BESIDE, rel=0.05)


def test_a_missed_target_ends_with_1_and_says_by_how_much(run: Run) -> None:
    put(CLAUDE)
    done = run("prune", CLAUDE, "--target", "10")
    assert done.exit_code == 1
    assert "target 10: missed by" in done.stdout
    assert run("prune", CLAUDE, "--preset", "tight").exit_code == 0


def test_nothing_to_do_writes_nothing(run: Run, project: Path) -> None:
    put(CLAUDE)
    done = run("prune", CLAUDE, "--target", "100%", "-o", "copy.jsonl")
    assert done.exit_code == 0
    assert done.stdout.endswith("nothing to write: no segment leaves\n")
    assert not (project / "copy.jsonl").exists()


def test_long_plans_are_cut_unless_all_is_asked_for(run: Run) -> None:
    put(CLAUDE)
    short = run("prune", CLAUDE, "--preset", "tight").stdout
    whole = run("prune", CLAUDE, "--preset", "tight", "--all").stdout
    assert "more," in short or len(short.splitlines()) == len(whole.splitlines())
    assert "(--all lists them)" not in whole


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nothing.jsonl"], 1, "nothing.jsonl cannot be read"),
        ([CLAUDE, "--target", "much"], 2, "the target cannot be 'much' (next: give tokens"),
        ([CLAUDE, "-o", "x", "--in-place"], 2, "-o and --in-place exclude each other"),
        ([CLAUDE, "-o", CLAUDE], 2, "-o names the session itself (next: use --in-place)"),
        ([CLAUDE, "-o", "chat.json"], 1, "chat.json already exists (next: add --force"),
        ([CLAUDE, "--strategy", "gc_nothing"], 2, "gc_nothing"),
        (["empty.jsonl"], 1, "contains no readable message"),
        ([CLAUDE, "-o", "x/", "--store", "memory:"], 1, "a memory: store ends with its process"),
    ],
)
def test_errors_are_one_line_with_the_next_step(
    run: Run, project: Path, arguments: list[str], code: int, says: str
) -> None:
    put(CLAUDE)
    put("chat.json")
    (project / "empty.jsonl").write_bytes(b"hello\n")
    done = run("prune", *arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert (project / CLAUDE).read_bytes() == FILES[CLAUDE]


def test_the_configuration_of_the_project_counts(
    run: Run, write: Callable[[str, Any], Path]
) -> None:
    put(CLAUDE)
    write(".ctxgc/gc.json", {"type": "truncate"})
    assert json.loads(run("prune", CLAUDE, "--json").stdout)["strategy"] == "gc_truncate"
    write(".ctxgc/gc.json", {"type": "mark_sweep", "recent_messages": 1_000})
    report = json.loads(run("prune", CLAUDE, "--json").stdout)
    assert (report["segments"], report["written"]) == ([], None)
    tight = json.loads(run("prune", CLAUDE, "--json", "--preset", "tight").stdout)
    assert len(tight["segments"]) > 5
