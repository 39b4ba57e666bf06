"""An environment for the libraries that ctxgc is compared with.

They are never a dependency: the environment is in `out/peers/bench`, is made on the first run, and is
removed by `make clean`. If it cannot be made, a benchmark says so and continues without them.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import msgspec

HOME = Path(__file__).resolve().parents[1] / "out" / "peers" / "bench"
PACKAGES = ("langchain>=1.0,<2", "langchain-core>=1.0,<2", "agent-framework-core>=1.0,<2")
SCRIPT = Path(__file__).with_name("peers_case.py")


class PeersMissingError(Exception):
    """The peers cannot be measured here; the text says why."""


class Peer(msgspec.Struct, frozen=True):
    """One other library: its package with the version, and its seconds per size."""

    version: str
    seconds: list[float]


def measure_peers(sizes: list[list[dict[str, Any]]], runs: int) -> dict[str, Peer]:
    """Return what each peer takes for each of these histories.

    Raises:
        PeersMissingError: they could not be installed, or do not work here.
    """
    interpreter = _interpreter()
    asked = msgspec.json.encode({"sizes": sizes, "runs": runs})
    done = subprocess.run(
        [str(interpreter), str(SCRIPT)], input=asked, capture_output=True, check=False
    )
    if done.returncode:
        raise PeersMissingError(_last_line(done.stderr.decode("utf-8", "replace")))
    return msgspec.json.decode(done.stdout, type=dict[str, Peer])


def _interpreter() -> Path:
    """Return the peers' own interpreter, once it has them."""
    folder = "Scripts" if sys.platform == "win32" else "bin"
    interpreter, ready = HOME / folder / "python", HOME / ".ready"
    if not ready.exists():
        print(f"installing {', '.join(PACKAGES)} into {HOME.name} ...", file=sys.stderr)
        venv.create(HOME, with_pip=True, clear=True)
        command = [str(interpreter), "-m", "pip", "install", "--quiet", *PACKAGES]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if done.returncode:
            raise PeersMissingError(f"pip: {_last_line(done.stderr)}")
        ready.touch()
    return interpreter


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no message")
