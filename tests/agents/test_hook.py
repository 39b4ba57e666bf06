"""A hook never breaks the agent and never loses an output, whatever it is sent and whatever is broken."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxgc.agents.events import EVENTS, LOG_NAME, MOST_BYTES, HookSettings, log_failure
from ctxgc.agents.hook import respond
from ctxgc.core import segment_from_dict
from ctxgc.stores import open_store
from tests.examples import one_in

HOSTILE_INPUTS = 1_000
PROCESSES = 24
HUGE = "\n".join(f"line {n} of an output" for n in range(2_000))
ODD: tuple[Any, ...] = (
    None, True, -1, 1e300, "", "\x00", "\ud800", "x" * 50_000, [], {}, [[]], {"": None}, "../../etc",
)  # fmt: skip
FIELDS = (
    "session_id", "transcript_path", "tool_name", "tool_input", "tool_response", "source", "trigger",
    "context_window",
)  # fmt: skip
RESPONSES: tuple[Any, ...] = (
    HUGE, {"stdout": HUGE}, {"stdout": HUGE, "persistedOutputPath": "/dev/zero"}, {"content": HUGE},
    {"file": {"content": HUGE}}, [{"type": "text", "text": HUGE}], {"stdout": [HUGE]}, {"file": HUGE},
    "\ud800\x00" * 20_000, "x" * 200_000, "\n" * 50_000, {"content": [{"type": "text", "text": HUGE}, 7]},
)  # fmt: skip


def hostile(chance: random.Random) -> tuple[str, bytes]:
    """Return an event, and bytes that no well-behaved agent would send."""
    event = chance.choice([*EVENTS, *EVENTS, "post-tool-use", "post-tool-use", "no-event", ""])
    said: Any = {
        "session_id": "s", "tool_name": "Bash", "tool_response": chance.choice(RESPONSES),
        "source": "compact", "hook_event_name": event, "tool_input": {"command": "cat x"},
    }  # fmt: skip
    for _ in range(chance.randrange(4)):
        if chance.random() < 0.5:
            said.pop(chance.choice(FIELDS), None)
        else:
            said[chance.choice(FIELDS)] = chance.choice(ODD)
    raw = json.dumps(said).encode()
    return event, chance.choice(_DAMAGES)(raw, chance)


_DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *[lambda raw, _: raw] * 20,
    lambda raw, chance: raw[: chance.randrange(len(raw))],
    lambda raw, chance: raw.replace(b'"', b"\x00", chance.randrange(3)),
    lambda raw, _: b"\xff\xfe" + raw,
    lambda raw, _: b"[" * 100_000,
    lambda raw, _: b'{"tool_response": ' * 20_000,
    lambda raw, _: b"[" + raw + b"]",
    lambda raw, _: b"",
    lambda raw, _: b"null",
)


def break_home(home: Path, how: str) -> None:
    home.mkdir(exist_ok=True)
    if how == "a damaged store":
        (home / "stash.sqlite").write_bytes(b"no database" * 100)
    elif how == "an inbox that is a file":
        (home / "stash.sqlite.inbox").write_bytes(b"")
    elif how == "a log that is a folder":
        (home / LOG_NAME).mkdir()


BROKEN = ("nothing", "a damaged store", "an inbox that is a file", "a log that is a folder")


def test_a_thousand_hostile_inputs_change_nothing_but_what_is_stashed(home: Path) -> None:
    chance = random.Random(7)
    for number in range(HOSTILE_INPUTS):
        folder = home / f"ours-{number % len(BROKEN)}"
        if not folder.exists():
            break_home(folder, BROKEN[number % len(BROKEN)])
        event, raw = hostile(chance)
        answer = respond([event, "--home", str(folder)], raw)
        assert_no_loss(folder, raw, answer)
    inbox = home / "ours-0" / "stash.sqlite.inbox"
    handles = {path.stem for path in inbox.iterdir()}
    store = open_store(f"json:{home}/ours-0/stash.sqlite")
    found = [doc for info in store.sessions() for _, doc in store.load(info.session_id, "segments")]
    store.close()
    assert len(handles) > 20
    assert {doc["handle"] for doc in found} == handles
    assert list(inbox.iterdir()) == []
    for doc in found:
        segment_from_dict({key: value for key, value in doc.items() if key != "handle"})


def assert_no_loss(folder: Path, raw: bytes, answer: bytes) -> None:
    """What the answer takes away from the agent must be in the stash."""
    if not answer.startswith(b'{"hookSpecificOutput": {"hookEventName": "PostToolUse"'):
        return
    said = json.loads(raw)
    new = json.loads(answer)["hookSpecificOutput"]["updatedToolOutput"]
    assert type(new) is type(said["tool_response"])
    for stub in _tombstones(new):
        handle = stub.partition('handle="')[2][:18]
        entry = json.loads((folder / "stash.sqlite.inbox" / f"{handle}.json").read_bytes())
        assert json.dumps(entry["document"]["text"])[1:-1] in json.dumps(said["tool_response"])


def _tombstones(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value.startswith("[ctxgc:") else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [stub for each in inner for stub in _tombstones(each)]


@one_in(2)
@given(
    st.binary(max_size=200),
    st.sampled_from([*EVENTS, "x"]),
    st.lists(st.text(max_size=5), max_size=4),
)
def test_any_bytes_and_any_words_are_answered(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes, event: str, words: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("ours")
    assert respond([event, "--home", str(folder), *words], raw) in (b"", b"ctxgc\n")


def run(home: Path, *words: str, raw: bytes, **env: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-P", "-m", "ctxgc.agents.hook", *words]
    return subprocess.run(
        command, input=raw, capture_output=True, check=False, timeout=60, cwd=home,
        env={**os.environ, "HOME": str(home), **env},
    )  # fmt: skip


def test_real_processes_end_well_and_say_nothing_on_standard_error(home: Path) -> None:
    chance = random.Random(11)
    for number in range(PROCESSES):
        folder = home / f"ours-{number % len(BROKEN)}"
        break_home(folder, BROKEN[number % len(BROKEN)]) if not folder.exists() else None
        event, raw = hostile(chance)
        done = run(home, event, "--home", str(folder), raw=raw)
        assert (done.returncode, done.stderr) == (0, b"")
        assert_no_loss(folder, raw, done.stdout)


def test_a_module_of_the_project_is_not_taken_for_ours(home: Path) -> None:
    for name in ("json", "ctxgc", "typing"):
        (home / f"{name}.py").write_text("raise SystemExit(3)", encoding="utf-8")
    raw = json.dumps({"tool_name": "Bash", "tool_response": HUGE}).encode()
    done = run(home, "post-tool-use", "--home", str(home / "ours"), raw=raw)
    assert done.returncode == 0
    assert b"updatedToolOutput" in done.stdout


def test_a_hook_ends_well_when_nobody_reads_its_answer(home: Path) -> None:
    raw = json.dumps({"tool_name": "Bash", "tool_response": HUGE}).encode()
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ctxgc.agents.hook", "post-tool-use", "--home", str(home)],
        input=raw, stdout=write, stderr=subprocess.PIPE, check=False, timeout=60,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_small_output_loads_next_to_nothing(home: Path) -> None:
    code = (
        "import sys; from ctxgc.agents.hook import respond; respond(['post-tool-use'], b'{}'); "
        "print(sorted(m for m in sys.modules if m.startswith('ctxgc') or m in ('json', 're')))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, check=True, encoding="utf-8",
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    found = done.stdout.replace("'re', ", "").replace(
        ", 're'", ""
    )  # typing of some versions has it
    assert (
        found.strip()
        == "['ctxgc', 'ctxgc._lazy', 'ctxgc._version', 'ctxgc.agents', 'ctxgc.agents.hook']"
    )


def test_a_huge_output_does_not_load_the_stores(home: Path) -> None:
    code = (
        "import sys; from ctxgc.agents.hook import respond; "
        "answer = respond(['post-tool-use', '--home', sys.argv[1]], sys.stdin.buffer.read()); "
        "print(len(answer) > 100, 'msgspec' in sys.modules, 'sqlite3' in sys.modules)"
    )
    raw = json.dumps({"tool_name": "Bash", "tool_response": HUGE}).encode()
    done = subprocess.run(
        [sys.executable, "-c", code, str(home)], input=raw, capture_output=True, check=True
    )
    assert done.stdout.split() == [b"True", b"False", b"False"]


def test_a_failure_is_logged_without_keys_and_the_log_does_not_grow_for_ever(home: Path) -> None:
    key = "sk-ant-" + "a1B2" * 10
    settings_ = HookSettings(home=str(home))
    log_failure(settings_, "pre-compact", ValueError(f"no {key}\nnot here"))
    log = home / LOG_NAME
    assert "claude-code pre-compact: FAILED ValueError: no [secret:anthropic] not here" in (
        log.read_text(encoding="utf-8")
    )
    log.write_bytes(b"x" * MOST_BYTES)
    log_failure(settings_, "pre-compact", ValueError("again"))
    assert (home / f"{LOG_NAME}.1").stat().st_size == MOST_BYTES
    assert log.stat().st_size < 200


def test_what_real_processes_stashed_is_in_the_store(home: Path) -> None:
    raw = json.dumps({"session_id": "s", "tool_name": "Bash", "tool_response": HUGE}).encode()
    url = f"json:{home}/mine.json"
    done = run(home, "post-tool-use", "--home", str(home), "--store", url, raw=raw)
    handle = json.loads(done.stdout)["hookSpecificOutput"]["updatedToolOutput"].split('"')[1]
    store = open_store(url)
    ((_, doc),) = store.load("claude-code/s", "segments")
    assert (doc["handle"], doc["text"]) == (handle, HUGE)
    store.close()
