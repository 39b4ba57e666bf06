"""How fast `ctxgc analyze` reads a long transcript, and how soon `ctxgc --help` is there.

python -m bench.cli            100 MB
python -m bench.cli --quick    10 MB

Each analysis runs in a process of its own, which reports its processor time and its peak of memory.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.tables import duration, print_table, run
from ctxgc.insight import analyze_transcript
from ctxgc.wire.transcripts import open_transcript
from tests.wire.transcripts import made

SIZE = 100_000_000
LEAST_MB_PER_SECOND = 20.0
MOST_MB = 300.0
MOST_TIMES = 3.0
STARTS = 15


def main(arguments: list[str]) -> int:
    """Run the benchmark and print what was found."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(_analyzed(Path(arguments[1]))))
        return 0
    size = SIZE // 10 if "--quick" in arguments else SIZE
    with tempfile.TemporaryDirectory() as folder:
        rows, met = _files(Path(folder), size)
    print_table(rows, names=True)
    print(f"\ntarget: at least {LEAST_MB_PER_SECOND:.0f} MB/s: {_met(all(f for f, _ in met))}")
    print(f"target: at most {MOST_MB:.0f} MB of memory: {_met(all(fits for _, fits in met))}\n")
    _help()
    return 0


def _files(folder: Path, size: int) -> tuple[list[list[str]], list[tuple[bool, bool]]]:
    rows = [["transcript", "MB", "total", "MB/s", "read", "garbage", "replay", "peak"]]
    met = []
    for name in ("claude code", "codex", "messages"):
        found = _run(_write(folder / "transcript", name, size))
        speed = found["bytes"] / 1e6 / found["total"]
        met.append((speed >= LEAST_MB_PER_SECOND, found["peak"] <= MOST_MB))
        stages = [duration(found[stage]) for stage in ("reading", "garbage", "replaying")]
        rows.append(
            [name, f"{found['bytes'] / 1e6:.0f}", duration(found["total"]), f"{speed:.0f}", *stages,
             f"{found['peak']:.0f} MB"]
        )  # fmt: skip
    return rows, met


def _write(path: Path, name: str, size: int) -> Path:
    """Write a long session: conversations of about a window each, one after the other."""
    steps = made.conversation(turns=60, lines=150)
    with path.open("wb") as file:
        number = 0
        while file.tell() < size:
            # Ids of their own for each part, as a real session has.
            said = {
                "claude code": lambda: made.claude_code(steps, compact_after=40),
                "codex": lambda: made.codex(steps, compact_after=40),
                "messages": lambda: made.chat(steps)[1:],
            }[name]()
            lines = b"".join(json.dumps(line).encode() + b"\n" for line in said)
            for old in (b'"call_', b'"toolu_', b'"msg_', b'"00000000'):
                lines = lines.replace(old, old + b"%d" % number)
            file.write(lines)
            number += 1
    return path


def _run(path: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.cli", "--one", str(path)],
        capture_output=True, check=True, encoding="utf-8",
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _analyzed(path: Path) -> dict[str, Any]:
    begins: dict[str, float] = {}
    start = time.process_time()
    transcript = open_transcript(path)
    analyze_transcript(
        transcript,
        progress=lambda stage, _done, _all: begins.setdefault(stage, time.process_time()),
    )
    end = time.process_time()
    return {
        "bytes": transcript.size,
        "total": end - start,
        "reading": begins["garbage"] - start,
        "garbage": begins["replaying"] - begins["garbage"],
        "replaying": end - begins["replaying"],
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _help() -> None:
    """Compare the start of the command line with that of an empty program, run in turn."""
    ours, empty = [], []
    for _ in range(STARTS):
        empty.append(_processor_time([sys.executable, "-c", "pass"]))
        ours.append(_processor_time([sys.executable, "-m", "ctxgc.cli", "--help"]))
    times = median(ours) / median(empty)
    print_table(
        [["python -c pass", duration(median(empty))], ["ctxgc --help", duration(median(ours))]],
        names=True,
    )
    print(f"\ntarget: at most {MOST_TIMES:.0f} times: {times:.1f}, {_met(times <= MOST_TIMES)}")


def _processor_time(command: list[str]) -> float:
    """Return the processor seconds of a finished child; those of the clock depend on who else runs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _met(is_met: bool) -> str:
    return "met" if is_met else "NOT MET"


if __name__ == "__main__":
    sys.exit(run(main, __doc__))
