"""Where goldens are kept, and the pinned surroundings in which their scenarios run."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "tests" / "golden" / "files"
INPUTS = ROOT / "tests" / "golden" / "inputs"

_HIDDEN = ("CTXGC_", "JAATO_", "CLAUDE_", "CODEX_", "LC_", "XDG_", "PYTHON")
_HIDDEN_TOO = {"LANG", "LANGUAGE", "LINES", "FORCE_COLOR", "TERM", "TZ"}
_PATIENCE = 300


def surroundings(home: Path) -> dict[str, str]:
    """Return an environment that says nothing about this machine but where its programs are."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_HIDDEN) and name not in _HIDDEN_TOO
    }
    # The hash seed is not pinned: an answer that depends on it is a fault that goldens should show.
    seed = os.environ.get("PYTHONHASHSEED")
    given = {"PYTHONHASHSEED": seed} if seed else {}
    return {
        **kept, **given, "HOME": str(home), "COLUMNS": "80", "NO_COLOR": "1", "TZ": "UTC",
        "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8",
    }  # fmt: skip


def command(*arguments: str) -> list[str]:
    """Return the command line of `ctxgc`."""
    return [sys.executable, "-m", "ctxgc", *arguments]


def ctxgc(folder: Path, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
    """Run `ctxgc` in a folder and return what it wrote.

    Raises:
        RuntimeError: it ended with another exit code.
    """
    done = subprocess.run(  # noqa: S603 - our own command
        command(*arguments), cwd=folder, env=surroundings(folder), capture_output=True,
        encoding="utf-8", timeout=_PATIENCE, check=False,
    )  # fmt: skip
    if done.returncode not in codes:
        said = f"{done.stdout[-2_000:]}{done.stderr[-2_000:]}"
        raise RuntimeError(f"ctxgc {' '.join(arguments)} ended with {done.returncode}: {said}")
    return done.stdout


def ctxgc_each(
    folder: Path, calls: Sequence[Sequence[str]], codes: tuple[int, ...] = (0,)
) -> list[str]:
    """Run `ctxgc` for each list of arguments, in one process, and return what each call wrote.

    Raises:
        RuntimeError: a call ended with another exit code.
    """
    runner = Path(__file__).with_name("runner.py")
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, str(runner)], cwd=folder, env=surroundings(folder), capture_output=True,
        input=json.dumps(calls), encoding="utf-8", timeout=_PATIENCE, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the runner ended with {done.returncode}: {done.stderr[-2_000:]}")
    answers = json.loads(done.stdout)
    for arguments, (said, code) in zip(calls, answers, strict=True):
        if code not in codes:
            raise RuntimeError(f"ctxgc {' '.join(arguments)} ended with {code}: {said[-2_000:]}")
    return [said for said, _ in answers]


def input_bytes(name: str) -> bytes:
    """Return a committed input, unpacked."""
    return gzip.decompress((INPUTS / f"{name}.gz").read_bytes())


def keep_input(name: str, data: bytes) -> None:
    """Pack an input into the folder of inputs; the same bytes make the same file."""
    INPUTS.mkdir(parents=True, exist_ok=True)
    (INPUTS / f"{name}.gz").write_bytes(gzip.compress(data, 9, mtime=0))


def placed(folder: Path, name: str) -> Path:
    """Unpack an input into a folder and return its path."""
    path = folder / name
    path.write_bytes(input_bytes(name))
    return path


@contextmanager
def quiet_place(folder: Path) -> Iterator[None]:
    """Work in a folder without what the environment says about ctxgc; both are as before afterwards."""
    ours = [name for name in os.environ if name.startswith(("CTXGC_", "JAATO_"))]
    hidden = {name: os.environ.pop(name) for name in ours}
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.update(hidden)
