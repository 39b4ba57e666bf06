"""A process that speaks JSON lines, however badly it behaves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctxgc.errors import PeerError
from ctxgc.lab.peers.policy import Worker

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)\n"

Start = Callable[..., Worker]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a worker that runs a script; all are ended after the test."""
    begun: list[Worker] = []

    def starter(script: str, seconds: float = 30.0, **env: str) -> Worker:
        file = tmp_path / f"worker{len(begun)}.py"
        file.write_text(script, encoding="utf-8")
        begun.append(Worker([sys.executable, str(file)], env, seconds))
        return begun[-1]

    yield starter
    for worker in begun:
        worker.close()


def test_each_question_gets_its_answer(start: Start) -> None:
    worker = start(ECHO)
    assert [worker.ask({"n": n}) for n in range(3)] == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_a_question_may_be_larger_than_any_pipe(start: Start) -> None:
    question = {"text": "ü" * 2_000_000}
    assert start(ECHO).ask(question) == question


def test_a_crash_is_an_error_with_its_last_words(start: Start) -> None:
    worker = start("import sys\nsys.stdin.readline()\nraise ValueError('no such model')\n")
    with pytest.raises(PeerError) as caught:
        worker.ask({})
    assert caught.value.message == "ended with code 1"
    assert caught.value.details == {"stderr": "ValueError: no such model"}
    assert not worker.is_alive


def test_a_worker_that_hangs_without_reading_is_ended(start: Start) -> None:
    worker = start("import time\ntime.sleep(600)\n", seconds=0.3)
    with pytest.raises(PeerError, match=r"no answer in 0\.3 s"):
        worker.ask({"text": "x" * 1_000_000})
    assert not worker.is_alive


@pytest.mark.parametrize("said", ["garbage", "[1, 2]", "{broken"])
def test_garbage_is_an_error(start: Start, said: str) -> None:
    with pytest.raises(PeerError, match="not a JSON object"):
        start(f"print({said!r}, flush=True)\ninput()\ninput()\n").ask({})


def test_an_error_that_a_worker_reports_is_raised(start: Start) -> None:
    with pytest.raises(PeerError, match="too old"):
        start("""print('{"error": "too old"}', flush=True)\ninput()\ninput()\n""").ask({})


def test_an_ended_worker_stays_ended(start: Start) -> None:
    worker = start("")
    for _ in range(2):
        with pytest.raises(PeerError, match="ended with code 0"):
            worker.ask({})


def test_what_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="cannot start"):
        Worker([str(tmp_path / "missing")], {}, 1.0)


def test_it_sees_nothing_of_our_environment_and_a_home_that_is_thrown_away(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "hush")
    script = "import json, os\ninput()\nprint(json.dumps(dict(os.environ)), flush=True)\ninput()\n"
    worker = start(script, COLOUR="blue")
    seen = worker.ask({})
    assert "SECRET_KEY" not in seen
    assert (seen["COLOUR"], seen["PYTHONHASHSEED"]) == ("blue", "0")
    assert Path(seen["HOME"]).is_dir()
    worker.close()
    assert not Path(seen["HOME"]).exists()
