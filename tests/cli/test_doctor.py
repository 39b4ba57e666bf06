"""`ctxgc doctor`: histories, stores, configurations, installations."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from ctxgc import validate
from ctxgc.stores import Drop, concurrency, open_store
from ctxgc.wire.transcripts import open_writable
from tests.cli.stash_cases import STORE, make_session
from tests.session_files import ClaudeCode, all_files, chat, claude_code, dumped

Run = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("wide")


@pytest.fixture(autouse=True)
def _no_agents(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No agent of this machine has a say."""
    monkeypatch.setenv("HOME", str(project))


def put(name: str, data: bytes) -> Path:
    path = Path(name)
    path.write_bytes(data)
    past = time.time() - 60
    os.utime(path, (past, past))
    return path


def broken() -> dict[str, bytes]:
    """Return histories in which a call lost its result, of each kind that has lines."""
    made = ClaudeCode()
    made.user("Read it.")
    made.read(1)
    lost = made.lines.pop()
    made.lines.append({**lost, "message": {"role": "user", "content": "Never mind."}})
    messages = chat(2)
    del messages[3]
    codex = all_files()[
        next(name for name in all_files() if name.startswith("rollout"))
    ].splitlines(True)
    del codex[7]
    return {
        "claude.jsonl": dumped(made.lines),
        "chat.jsonl": dumped(messages),
        "chat.json": json.dumps(messages).encode(),
        "rollout.jsonl": b"".join(codex),
    }


@pytest.mark.parametrize("name", sorted(all_files()))
def test_a_sound_history_is_well(run: Run, name: str) -> None:
    put(name, all_files()[name])
    done = run("doctor", name)
    assert done.exit_code == 0
    assert done.stdout.startswith(f"ok: {name}: ")
    assert "no rule broken" in done.stdout


@pytest.mark.parametrize("name", sorted(broken()))
def test_a_broken_history_is_repaired_and_can_be_put_back(run: Run, name: str) -> None:
    path = put(name, broken()[name])
    found = run("doctor", name)
    assert found.exit_code == 1
    assert found.stdout.startswith(f"error: {name} ")
    assert f"(next: ctxgc unbrick {name})" in found.stdout
    assert path.read_bytes() == broken()[name]
    fixed = run("doctor", name, "--fix")
    assert fixed.exit_code == 0
    assert fixed.stdout.splitlines()[-1].endswith(f"(next: ctxgc undo {name} restores it)")
    again = open_writable(path)
    assert validate([entry.data for entry in again.entries], again.format) == []
    assert run("doctor", name).exit_code == 0
    assert run("undo", name).exit_code == 0
    assert path.read_bytes() == broken()[name]


def test_damaged_lines_are_told_with_their_numbers(run: Run) -> None:
    lines = claude_code().splitlines(keepends=True)
    lines[3] = b'{"type": "user", "mess\n'
    put("s.jsonl", b"".join(lines) + b'{"half')
    done = run("doctor", "s.jsonl", "--json")
    assert done.exit_code == 1
    found = {each["where"]: each["level"] for each in json.loads(done.stdout)}
    assert found["s.jsonl line 4"] == "warning"
    assert found[f"s.jsonl line {len(lines) + 1}"] == "warning"


def test_a_message_without_a_shape_is_dropped_and_that_is_said(run: Run) -> None:
    good = {"role": "user", "content": "hi"}
    put("c.json", json.dumps([good, {"role": "user", "content": 5}]).encode())
    done = run("doctor", "c.json", "--fix")
    assert done.exit_code == 0
    assert "ok: c.json: dropped: 1 message of no valid shape\n" in done.stdout
    assert json.loads(Path("c.json").read_bytes()) == [good]


def test_a_repair_that_would_leave_nothing_is_not_made(run: Run) -> None:
    data = b'[{"role": "user", "content": 5}]'
    path = put("c.json", data)
    done = run("doctor", "c.json", "--fix")
    assert (done.exit_code, path.read_bytes()) == (1, data)
    assert "c.json: no message would be left: nothing was changed" in done.stdout


def test_a_file_being_written_is_not_repaired(run: Run) -> None:
    path = put("chat.jsonl", broken()["chat.jsonl"])
    os.utime(path)
    done = run("doctor", "chat.jsonl", "--fix")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "is being written" in done.stderr
    assert path.read_bytes() == broken()["chat.jsonl"]


@pytest.mark.parametrize("url", [STORE, "sqlite:my.db"])
def test_a_store_is_well_until_a_handle_leads_nowhere(run: Run, url: str) -> None:
    make_session(url).close()
    path = url.partition(":")[2]
    assert run("doctor", url).stdout == f"ok: {url}: 1 session, every handle resolves\n"
    assert run("doctor", path).exit_code == 0
    store = open_store(url)
    docs = dict(store.load("work", "segments"))
    stand_in = next(doc for doc in docs.values() if doc.get("derived_from"))
    store.commit("work", [Drop("segments", stand_in["derived_from"])])
    store.close()
    done = run("doctor", url)
    assert done.exit_code == 1
    assert f"a tombstone names {stand_in['handle']}, which no segment has" in done.stdout


def test_a_session_that_is_written_to_all_the_time_is_told_as_busy(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_session().close()
    monkeypatch.setattr(concurrency, "TRIES", 0)
    found = json.loads(run("doctor", STORE, "--json").stdout)
    assert [(each["level"], each["fix"]) for each in found] == [
        ("warning", "call again, or end what writes to it")
    ]


def test_a_damaged_store_is_told_and_what_it_held_is_saved(run: Run, project: Path) -> None:
    make_session().close()
    path = project / "artifacts/context_stash.json"
    path.write_bytes(path.read_bytes().replace(b'{"session_id"', b'{"sessio', 1))
    done = run("doctor", STORE)
    assert done.exit_code == 1
    assert "repaired on opening" in done.stdout


def test_a_configuration_is_checked(run: Run, write: Callable[[str, Any], Path]) -> None:
    write(".ctxgc/gc.json", {"type": "hybrid"})
    assert run("doctor", ".ctxgc/gc.json").stdout == "ok: .ctxgc/gc.json: uses hybrid\n"
    write(".ctxgc/gc.json", {"type": "hybrid", "treshold_percent": 70})
    done = run("doctor", ".ctxgc/gc.json")
    assert done.exit_code == 1
    assert "threshold_percent" in done.stdout


def test_the_environment_is_checked_where_there_is_no_file(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXGC_TARGET_PERCENT", "abc")
    monkeypatch.setenv("CTXGC_TARGT_PERCENT", "40")
    done = run("doctor")
    assert done.exit_code == 1
    first, second, *_ = done.stdout.splitlines()
    assert first.startswith("warning: environment: CTXGC_TARGT_PERCENT sets nothing; did you mean")
    assert second.startswith("error: environment: ")
    assert "CTXGC_TARGET_PERCENT" in second


def test_without_a_name_everything_here_is_checked(run: Run) -> None:
    done = run("doctor")
    assert done.exit_code == 0
    assert [line.partition(": ")[2].partition(":")[0] for line in done.stdout.splitlines()] == [
        "configuration",
        "sqlite",
        "agents",
    ]
    make_session().close()
    assert "1 session, every handle resolves" in run("doctor").stdout
    assert run("doctor", "--quiet").output == ""
    assert run("doctor", "agents").stdout.startswith("info: agents: not installed for any agent")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing.jsonl", "nothing.jsonl cannot be read"),
        ("noise.txt", "noise.txt contains no readable message"),
    ],
)
def test_what_is_nothing_of_this_is_one_line(run: Run, name: str, says: str) -> None:
    put("noise.txt", b"hello\n")
    done = run("doctor", name)
    assert (done.exit_code, done.stdout) == (1, "")
    assert says in done.stderr


def test_a_store_that_is_not_there_is_found(run: Run) -> None:
    done = run("doctor", "json:none.json")
    assert (done.exit_code, done.stdout) == (
        1,
        "error: json:none.json: there is no store (next: name another store)\n",
    )


def test_damaged_and_cut_off_lines_are_dropped_and_come_back_with_undo(run: Run) -> None:
    lines = claude_code().splitlines(keepends=True)
    damaged = b"".join([*lines[:3], b'{"half": \n', *lines[4:], lines[-1][:40]])
    path = put("claude.jsonl", damaged)
    assert run("doctor", "claude.jsonl").exit_code == 1
    said = run("unbrick", "claude.jsonl")
    assert said.exit_code == 0, said.output
    assert f"dropped: 2 damaged lines (4, {len(lines) + 1})" in said.output
    assert run("doctor", "claude.jsonl").exit_code == 0
    known = [json.loads(line) for line in path.read_bytes().splitlines()]
    ids = {line.get("uuid") for line in known}
    assert all(line.get("parentUuid") in {*ids, None} for line in known)
    undone = run("undo", "claude.jsonl")
    assert "before the last change" in undone.output
    assert path.read_bytes() == damaged


def test_a_sound_session_is_left_alone_by_unbrick(run: Run) -> None:
    path = put("claude.jsonl", claude_code())
    said = run("unbrick", "claude.jsonl")
    assert (said.exit_code, path.read_bytes()) == (0, claude_code())
    assert "no rule broken" in said.output


def test_damage_in_one_json_value_is_told_and_not_written(run: Run) -> None:
    path = put("chat.json", b'[{"role": "user", "content": "hi"}, {"role": ')
    before = path.read_bytes()
    said = run("unbrick", "chat.json")
    assert said.exit_code == 1
    assert path.read_bytes() == before
