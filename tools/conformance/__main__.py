"""Run the conformance suite: `python -m tools.conformance`.

The fixture server must pass every scored scenario of both revisions. Our own server may fail those of
`expected_failures.yml`, which are about tools and features that it does not have; one that it passes
must leave the list.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools import agents_env

REVISIONS = ("2025-11-25", "2026-07-28")
EXPECTED = Path(__file__).with_name("expected_failures.yml")
FIXTURE = [sys.executable, "-m", "tools.conformance.fixture"]


def main() -> int:
    """Return 0 if both servers are as they should be."""
    try:
        index = agents_env.suite("conformance") / "dist" / "index.js"
        program = [str(agents_env.node()), str(index), "server"]
    except agents_env.MissingError as error:
        return agents_env.skip("conformance", error)
    with tempfile.TemporaryDirectory() as folder:
        store = f"json:{folder}/store.json"
        ours = [sys.executable, "-m", "ctxgc.cli", "mcp", "--http", "--port", "0", "--no-token"]
        return max(
            _judge("fixture", FIXTURE, program),
            _judge("ctxgc mcp", [*ours, "--store", store], program, EXPECTED),
        )


def _judge(name: str, server: list[str], program: list[str], expected: Path | None = None) -> int:
    worst = 0
    with _serving(server) as url:
        for revision in REVISIONS:
            command = [*program, "--url", url, "--requirements", revision]
            if expected is not None:
                command += ["--expected-failures", str(expected)]
            done = subprocess.run(  # noqa: S603 - our own command
                command, capture_output=True, encoding="utf-8", check=False, timeout=900
            )
            print(f"{name}, revision {revision}: {'held' if not done.returncode else 'FAILED'}")
            for line in _telling(done.stdout, everything=bool(done.returncode)):
                print(f"  {line}")
            worst = max(worst, done.returncode)
    return worst


def _telling(output: str, *, everything: bool) -> list[str]:
    """Return the summary of a run; of one that failed, its failures too."""
    summary = output.partition("=== SUMMARY ===")[2].splitlines()
    lines = [line.strip() for line in summary if line.strip()]
    return [line for line in lines if everything or not line.startswith("✓")]


@contextmanager
def _serving(command: list[str]) -> Iterator[str]:
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, stderr=subprocess.PIPE, encoding="utf-8"
    )
    try:
        said = process.stderr.readline() if process.stderr is not None else ""
        found = re.search(r"http://\S+/mcp", said)
        if found is None:
            raise RuntimeError(f"the server does not start: {said}")
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=120)


if __name__ == "__main__":
    sys.exit(main())
