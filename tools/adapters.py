"""The adapters with the real packages: each framework in an environment of its own.

python -m tools.adapters install [NAME ...]   make the environments, all if none is named
python -m tools.adapters run [NAME ...]       install what is missing, and run the tests of each
python -m tools.adapters table                write the rows of docs/adapters/README.md that were run here

The environments are in `out/adapters`, which git ignores. Where a package cannot be had, it is passed over:
`SKIPPED`, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path

from ctxgc.adapters import FRAMEWORKS, Framework
from tools.agents_env import ROOT, MissingError, skip

FOLDER = ROOT / "out" / "adapters"
PAGE = ROOT / "docs" / "adapters" / "README.md"
MARKS = ("<!-- made: matrix (begin) -->", "<!-- made: matrix (end) -->")
TEST_TOOLS = ("pytest", "pytest-timeout", "hypothesis")
PATIENCE = 900
COLUMNS = {
    "recall": ("recalls",),
    "restart": ("continues",),
    "persistent": ("persistent",),
    "overflow retry": ("overflow", "refusal"),
    "async": ("async",),
}
"""What a framework can do, by words in the names of its tests: one that passed shows it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tools.adapters")
    parser.add_argument("what", choices=["install", "run", "table"])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(sorted(by_name())))
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.names if name not in by_name()]
    if unknown:
        parser.error(f"there is no adapter for {', '.join(unknown)}")
    if asked.what == "table":
        return write_table()
    chosen = [by_name()[name] for name in asked.names] or list(FRAMEWORKS)
    return max([_do(framework, run=asked.what == "run") for framework in chosen])


def by_name() -> dict[str, Framework]:
    """Return the frameworks by their names."""
    return {framework.name: framework for framework in FRAMEWORKS}


def _do(framework: Framework, *, run: bool) -> int:
    try:
        install(framework)
    except MissingError as error:
        return skip(f"adapter {framework.name}", error)
    return run_tests(framework) if run else 0


def interpreter(framework: Framework) -> Path:
    """Return the interpreter that has a framework: our own if it has this very version."""
    if framework.installed() == framework.tested:
        return Path(sys.executable)
    return FOLDER / framework.name / "bin" / "python"


def install(framework: Framework) -> None:
    """Make the environment of a framework, unless it has these versions already.

    Raises:
        MissingError: a package, or the Python that it needs, cannot be had.
    """
    wanted = [f"{framework.package}=={framework.tested}", *framework.also]
    mark = FOLDER / framework.name / ".ready"
    if framework.installed() == framework.tested:
        return
    if mark.is_file() and mark.read_text(encoding="utf-8") == "\n".join(wanted):
        return
    _call([_base_python(framework), "-m", "venv", str(FOLDER / framework.name)])
    pip = [str(interpreter(framework)), "-m", "pip", "install", "--quiet", *TEST_TOOLS]
    _call([*pip, "-e", f"{ROOT}[serve]", *wanted])
    mark.write_text("\n".join(wanted), encoding="utf-8")


def run_tests(framework: Framework) -> int:
    """Run the tests of a framework and its page in its environment; keep which of them passed."""
    name, report = framework.name, FOLDER / f"{framework.name}.xml"
    file = f"tests/adapters/test_{name.replace('-', '_')}.py"
    pages = "tests/adapters/test_pages.py"
    command = [str(interpreter(framework)), "-m", "pytest", "-p", "no:cacheprovider", "--quiet"]
    command += ["-W", "default"]  # the warnings of frameworks are their own affair
    only = ["-k", f"not test_pages or {name}", f"--junitxml={report}"]
    done = subprocess.run(  # noqa: S603 - our own command
        [*command, file, pages, *only], cwd=ROOT, check=False, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    passed = [] if done.returncode else passed_tests(report.read_text(encoding="utf-8"))
    FOLDER.mkdir(parents=True, exist_ok=True)
    _record(name, passed)
    print(f"{name} {framework.tested}: {f'{len(passed)} tests passed' if passed else 'FAILED'}")
    return 1 if done.returncode else 0


def passed_tests(report: str) -> list[str]:
    """Return the names of the tests that passed, from a report in JUnit's form."""
    cases = ET.fromstring(report).iter("testcase")  # noqa: S314 - written by pytest, just now
    return [case.get("name", "") for case in cases if not len(case)]


def write_table() -> int:
    """Write the matrix of the page from what passed last; return the exit code."""
    results = _results()
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(MARKS[0])
    tail = rest.partition(MARKS[1])[2]
    known = rest.partition(MARKS[1])[0].splitlines()
    made = f"{head}{MARKS[0]}\n{matrix(results, known)}\n{MARKS[1]}{tail}"
    PAGE.write_text(made, encoding="utf-8")
    return 0


def matrix(results: dict[str, list[str]], known: Sequence[str] = ()) -> str:
    """Return the matrix: a cell says yes if a test that shows it passed.

    What was not run here keeps its row of those known, if that is about the version tested.
    """
    head = ["framework", "version", "hook", *COLUMNS]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for framework in FRAMEWORKS:
        begin = f"| [{framework.name}]({framework.name}.md) | {framework.tested} |"
        row = next((line for line in known if line.startswith(begin)), None)
        if row and framework.name not in results:
            lines.append(row)
            continue
        passed = results.get(framework.name, [])
        cells = [
            "yes" if any(word in test for test in passed for word in words) else "no"
            for words in COLUMNS.values()
        ]
        lines.append(f"{begin} {framework.hook} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _record(name: str, passed: list[str]) -> None:
    text = json.dumps({**_results(), name: passed}, indent=1)
    (FOLDER / "results.json").write_text(text, encoding="utf-8")


def _results() -> dict[str, list[str]]:
    file = FOLDER / "results.json"
    if not file.is_file():
        return {}
    read: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8"))
    return read


def _base_python(framework: Framework) -> str:
    """Return an interpreter that is new enough for a framework.

    Raises:
        MissingError: there is none.
    """
    if sys.version_info >= framework.python:
        return sys.executable
    for minor in range(framework.python[1], 16):
        for found in _pythons(minor):
            # A shim of a version manager may be there without the version.
            if not subprocess.run([found, "-V"], capture_output=True, check=False).returncode:  # noqa: S603
                return found
    raise MissingError(f"it needs Python {'.'.join(map(str, framework.python))}")


def _pythons(minor: int) -> Iterator[str]:
    """Yield the interpreters of a version: on the path, and where a version manager put ours."""
    found = shutil.which(f"python3.{minor}")
    if found:
        yield found
    yield from map(str, sorted(Path(sys.base_prefix).parent.glob(f"3.{minor}.*/bin/python")))


def _call(command: list[str]) -> None:
    try:
        subprocess.run(  # noqa: S603 - our own commands
            command, check=True, capture_output=True, timeout=PATIENCE, encoding="utf-8"
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise MissingError(said[-1] if said else "pip said nothing") from None


if __name__ == "__main__":
    sys.exit(main())
