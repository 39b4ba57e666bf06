"""The tools of the scripted agent: what each answers, made from the files as they are now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from ctxgc.lab.corpus.functions import Function
from ctxgc.lab.corpus.project import Module, Project
from ctxgc.lab.corpus.words import PLACES, Chance

READ_LINES = 2000


def read(project: Project, path: str, offset: int = 1, limit: int = READ_LINES) -> str:
    """Return lines of a file with their numbers."""
    lines = project.files[path].splitlines()[offset - 1 : offset - 1 + limit]
    return "\n".join(f"{number:>6}→{line}" for number, line in enumerate(lines, offset))


def grep(project: Project, pattern: str) -> str:
    """Return the lines of all files that hold a text."""
    found = [
        f"{path}:{number}:{line}"
        for path, text in sorted(project.files.items())
        for number, line in enumerate(text.splitlines(), 1)
        if pattern in line
    ]
    return "\n".join(found) or "No matches found"


def edit(project: Project, path: str, old: str, new: str) -> str:
    """Replace a text in a file and return the lines around it."""
    text = project.files[path]
    start = text[: text.index(old)].count("\n")
    project.files[path] = text.replace(old, new, 1)
    around = read(project, path, max(1, start - 3), new.count("\n") + 9)
    return (
        f"The file {path} has been updated. Here's the result of running `cat -n` on a snippet of "
        f"the edited file:\n{around}"
    )


def write(project: Project, path: str, text: str) -> str:
    """Make a file."""
    project.files[path] = text
    return f"File created successfully at: {path}"


def run_tests(project: Project, tests: str | None, *, verbose: bool = False) -> str:
    """Return what pytest prints about one test file, or about all."""
    broken = project.failing(tests)
    shown = [m for m in project.modules if tests in (None, m.tests)]
    count = sum(len(module.functions) for module in shown)
    parts = ["=" * 29 + " test session starts " + "=" * 29]
    parts.append(f"platform linux -- Python 3.12.4, pytest-8.3.2\nrootdir: {project.root}")
    parts.append(f"collected {count} items\n")
    parts += [_progress(project, module, verbose) for module in shown]
    if broken:
        parts.append("\n" + "=" * 35 + " FAILURES " + "=" * 35)
        parts += [_failure(project, module, function) for module, function in broken]
        parts.append("=" * 27 + " short test summary info " + "=" * 27)
        parts += [f"FAILED {_node(project, m, f)} - {_why(f)}" for m, f in broken]
    passed = count - len(broken)
    said = f"{len(broken)} failed, {passed} passed" if broken else f"{passed} passed"
    seconds = project.chance.randrange(40, 900) / 100
    return "\n".join([*parts, f"{'=' * 24} {said} in {seconds:.2f}s {'=' * 24}"])


def commit(project: Project, title: str, files: Sequence[str]) -> str:
    """Commit, and return what git prints."""
    sha = project.chance.hexes(8)
    project.commits.insert(0, (sha, title))
    inserted = project.chance.randrange(3, 60)
    return (
        f"[main {sha}] {title}\n {len(files)} files changed, {inserted} insertions(+), "
        f"{inserted // 2} deletions(-)"
    )


def git_log(project: Project, count: int = 12) -> str:
    """Return the newest commits, one on each line."""
    return "\n".join(f"{sha} {title}" for sha, title in project.commits[:count])


def todos(items: Sequence[str], done: int) -> list[dict[str, str]]:
    """Return the entries of a todo list of which so many are done."""
    states = ["completed"] * done + ["in_progress"] + ["pending"] * len(items)
    return [
        {"content": item, "status": state, "activeForm": f"Working on: {item}"}
        for item, state in zip(items, states, strict=False)
    ]


def service_log(chance: Chance, project: Project, fault: str, request: str, lines: int) -> str:
    """Return a long log in which one request fails; all other lines are routine."""
    at = chance.randrange(lines // 3, lines - 10)
    written = []
    now = datetime(2026, 2, 3, tzinfo=UTC) + timedelta(seconds=chance.randrange(40_000))
    for number in range(lines):
        now += timedelta(seconds=chance.randrange(1, 4))
        said = _log_line(chance, project, fault, request, number - at)
        written.append(f"{now:%Y-%m-%dT%H:%M:%SZ} {said}")
    return "\n".join(written)


def _log_line(chance: Chance, project: Project, fault: str, request: str, after: int) -> str:
    if after == 0:
        return f"ERROR worker-{chance.randrange(1, 9)} req={request} {fault}"
    if after in (1, 2):
        return f"WARN  worker-{chance.randrange(1, 9)} req={request} retry {after} of 3"
    module = chance.choice(project.modules)
    function = chance.choice(module.functions)
    return (
        f"INFO  worker-{chance.randrange(1, 9)} req={chance.hexes(10)} {function.name} "
        f"{chance.choice(PLACES)} took {chance.randrange(3, 900)} ms"
    )


def _progress(project: Project, module: Module, verbose: bool) -> str:
    name = module.tests.removeprefix(f"{project.root}/")
    marks = ["F" if project.is_broken(module, f) else "." for f in module.functions]
    if not verbose:
        return f"{name} {''.join(marks)}"
    words = {"F": "FAILED", ".": "PASSED"}
    return "\n".join(
        f"{_node(project, module, function)} {words[mark]}"
        for function, mark in zip(module.functions, marks, strict=True)
    )


def _failure(project: Project, module: Module, function: Function) -> str:
    path = module.path.removeprefix(f"{project.root}/")
    line = project.fault_line(module, function)
    body = "\n".join(f"    {text}" for text in function.faulty_text.splitlines())
    return (
        f"{'_' * 20} test_{function.name} {'_' * 20}\n\n"
        f"    def test_{function.name}() -> None:\n>       assert {function.trial} == {function.expected}\n"
        f"E       {_why(function)}\n\n{body}\n\n{path}:{line}: in {function.name}\n"
    )


def _why(function: Function) -> str:
    if "Error" in function.got:
        return function.got
    return f"AssertionError: assert {function.got} == {function.expected}"


def _node(project: Project, module: Module, function: Function) -> str:
    return f"{module.tests.removeprefix(project.root + '/')}::test_{function.name}"
