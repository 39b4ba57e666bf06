"""Two worker processes share the sessions of one store.

    python fleet.py postgresql://USER@HOST/DATABASE

It shows that a session can go from worker to worker, that different sessions can be worked on at the
same time, and what happens when two workers take the same one. It ends with an error if any of that
is not so.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

JOBS = 10


class Worker:
    """A worker in a process of its own."""

    def __init__(self, name: str, url: str) -> None:
        command = [sys.executable, str(Path(__file__).with_name("worker.py")), name, url]
        self._process = subprocess.Popen(  # noqa: S603 (our own script)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def start(self, do: str, session: str, **more: Any) -> None:
        """Give it a job."""
        self.send({"do": do, "session": session, **more})

    def send(self, value: dict[str, Any]) -> None:
        """Write it a line."""
        assert self._process.stdin is not None  # noqa: S101 (tells the type checker)
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def result(self) -> dict[str, Any]:
        """Wait for its next answer."""
        assert self._process.stdout is not None  # noqa: S101
        return dict(json.loads(self._process.stdout.readline()))

    def do(self, do: str, session: str, **more: Any) -> dict[str, Any]:
        """Give it a job and wait for the answer."""
        self.start(do, session, **more)
        return self.result()

    def end(self) -> None:
        """Let it finish."""
        self._process.communicate(timeout=60)


def hand_over(a: Worker, b: Worker) -> str:
    """A session that outgrew its window goes from one worker to the other."""
    for number in range(JOBS):
        text = " ".join(f"finding {number}.{each} is in order;" for each in range(80))
        left = a.do("say", "audit", text=text)
    found = b.do("look", "audit")
    same = (found["digest"], found["bytes"]) == (left["digest"], left["bytes"])
    check(same, "the view changed on its way")
    check(left["collections"] > 0, "there was no collection")
    check(b.do("say", "audit", text="Go on.")["digest"] != left["digest"], "B said nothing")
    return "A filled a session beyond its window, B went on with the same view, byte for byte"


def side_by_side(a: Worker, b: Worker) -> str:
    """Both work at the same time, each on a session."""
    for number in range(JOBS):
        a.start("say", "alpha", text=f"alpha {number}")
        b.start("say", "beta", text=f"beta {number}")
    refused = [worker.result()["refusals"] for _ in range(JOBS) for worker in (a, b)]
    check(refused == [[]] * len(refused), "sessions got into each other's way")
    return f"A and B wrote to a session each, {JOBS} times at once: no conflict"


def conflict(a: Worker, b: Worker) -> str:
    """Both take the same session; the slower one is refused and opens it again."""
    a.start("say", "shared", text="from A", pause=True)
    check(a.result() == {"paused": True}, "A did not wait")
    quicker = b.do("say", "shared", text="from B")
    a.send({"go": "on"})
    slower = a.result()
    check(quicker["refusals"] == [], "B was refused")
    check(len(slower["refusals"]) == 1, "A was not refused")
    check(slower["bytes"] > quicker["bytes"], "a message was lost")
    return f"A was refused ({slower['refusals'][0]}), opened it again and went on"


def check(holds: bool, otherwise: str) -> None:
    """End with an error unless something holds."""
    if not holds:
        raise SystemExit(f"error: {otherwise}")


def main(url: str) -> None:
    """Run the three scenes."""
    workers = Worker("A", url), Worker("B", url)
    for scene in (hand_over, side_by_side, conflict):
        sys.stdout.write(f"{scene.__name__}: {scene(*workers)}\n")
    for worker in workers:
        worker.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
