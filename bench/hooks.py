"""How long a coding agent waits for its hooks: whole processes, as the agent starts them.

python -m bench.hooks            200 runs of each
python -m bench.hooks --quick    20 runs of each

All kinds run in turn, so that a busy machine slows down all of them; an interpreter that does nothing runs
with them. Processor time is printed next to wall time, because a busy machine hardly changes it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from shutil import rmtree
from statistics import median
from typing import Any

from bench.tables import duration, print_table, run

RUNS = 200
MOST_SECONDS = 0.150
TRANSCRIPT_BYTES = 5_000_000


def main(arguments: list[str]) -> int:
    """Run the benchmark and print what was found; 1 if the target was missed."""
    runs = 20 if "--quick" in arguments else RUNS
    with tempfile.TemporaryDirectory() as folder:
        kinds = _kinds(Path(folder))
        times: dict[str, list[float]] = {name: [] for name in kinds}
        busy: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(runs):
            for name, (command, raw) in kinds.items():
                rmtree(Path(folder) / "checkpoints", ignore_errors=True)  # a second one is none
                passed, used = _run(command, raw)
                times[name].append(passed)
                busy[name].append(used)
    print(f"{runs} processes of each kind")
    rows = [
        [name, *map(duration, (median(took), _p95(took), median(busy[name]), _p95(busy[name])))]
        for name, took in times.items()
    ]
    print_table([["hook", "p50", "p95", "cpu p50", "cpu p95"], *rows], names=True)
    worst = max(_p95(took) for took in times.values())
    met = "met    " if worst <= MOST_SECONDS else "NOT MET"
    print(f"{met}  slowest p95 is {duration(worst)} (at most {duration(MOST_SECONDS)})")
    return int(worst > MOST_SECONDS)


def _kinds(folder: Path) -> dict[str, tuple[list[str], bytes]]:
    transcript = folder / "session.jsonl"
    _write_transcript(transcript)
    common = {"session_id": "s", "transcript_path": str(transcript), "source": "compact"}

    def hook(event: str, **said: Any) -> tuple[list[str], bytes]:
        words = [sys.executable, "-P", "-m", "ctxgc.agents.hook", event, "--home", str(folder)]
        return words, json.dumps({**common, **said}).encode()

    return {
        "an interpreter that does nothing": ([sys.executable, "-c", "pass"], b""),
        "post-tool-use, 2 KB": hook("post-tool-use", **_output(2_000)),
        "post-tool-use, 30 KB": hook("post-tool-use", **_output(30_000)),
        "post-tool-use, 1 MB": hook("post-tool-use", **_output(1_000_000)),
        "pre-compact, 5 MB": hook("pre-compact"),
        "session-start, 5 MB": hook("session-start"),
        "status-line": hook("status-line"),
    }


def _output(size: int) -> dict[str, Any]:
    lines = [f"{n} src/module_{n % 97}.py took {n * 7 % 90} ms" for n in range(size // 30)]
    call = {"command": "make all src/module_13.py"}
    response = {"stdout": "\n".join(lines)[:size], "stderr": "", "interrupted": False}
    return {"tool_name": "Bash", "tool_input": call, "tool_response": response}


def _write_transcript(path: Path) -> None:
    request = {"type": "user", "message": {"role": "user", "content": "You must keep the API."}}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "We decided so. " * 20}]}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "a line of output\n" * 400}
    entries = [
        request,
        {"type": "assistant", "message": answer},
        {"type": "user", "message": {"role": "user", "content": [result]}},
    ]
    piece = "".join(f"{json.dumps(entry)}\n" for entry in entries)
    path.write_text(piece * (TRANSCRIPT_BYTES // len(piece)), encoding="utf-8")


def _run(command: list[str], raw: bytes) -> tuple[float, float]:
    """Return the time that passed and the processor time that a process used."""
    started, before = time.perf_counter(), getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, input=raw, capture_output=True, check=True)
    passed, after = time.perf_counter() - started, getrusage(RUSAGE_CHILDREN)
    return passed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95) - 1]


if __name__ == "__main__":
    sys.exit(run(main, __doc__))
