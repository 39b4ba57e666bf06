"""The tools of the invented agent: what each prints for the project as it stands now."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random
from typing import Any

from ctxgc.testing.agent.project import Function, Module, Project

MAX_HITS = 40


def _schema(name: str, about: str, **fields: str) -> dict[str, Any]:
    properties = {field: {"type": kind} for field, kind in fields.items()}
    parameters = {"type": "object", "properties": properties, "required": list(fields)}
    return {"name": name, "description": about, "parameters": parameters}


SCHEMAS = (
    _schema("read_file", "Return a file with line numbers.", path="string"),
    _schema("grep", "Search all files for a text.", pattern="string"),
    _schema("edit_file", "Replace a text in a file.", path="string", old="string", new="string"),
    _schema("run_tests", "Run the tests of one file, or of the project.", target="string"),
    _schema("bash", "Run a shell command.", command="string"),
    _schema("write_todos", "Replace the list of open work.", todos="array"),
)


class Toolbox:
    """Runs the tools of one agent on one project."""

    def __init__(self, project: Project, random: Random) -> None:
        self._project = project
        self._random = random
        self._numbered: dict[str, tuple[str, str]] = {}
        self._runs = 0

    def read_file(self, module: Module) -> str:
        """Return a file with a number before each line."""
        known = self._numbered.get(module.path)
        if known is None or known[0] is not module.text:
            lines = enumerate(module.text.split("\n"), 1)
            known = (module.text, "\n".join(f"{n:6d}\t{line}" for n, line in lines))
            self._numbered[module.path] = known
        return known[1]

    def grep(self, pattern: str) -> str:
        """Return the lines of all files that hold a text, with their places."""
        files = (module for module in self._project.modules if pattern in module.text)
        hits = (
            f"{module.path}:{number}:{line.strip()}"
            for module in files
            for number, line in enumerate(module.text.split("\n"), 1)
            if pattern in line
        )
        return "\n".join(itertools.islice(hits, MAX_HITS)) or "no matches"

    def edit_file(self, module: Module, function: Function, value: int) -> tuple[str, str, str]:
        """Set a constant; return the old line, the new line and what the tool says."""
        old, new = function.constant_line(), function.constant_line(value)
        module.set_value(function, value)
        return old, new, _edited(module, new)

    def annotate(self, module: Module, entry: str) -> tuple[str, str, str]:
        """Write a note into the head of a file; return the same as `edit_file`."""
        old, new = module.add_note(entry)
        return old, new, _edited(module, new)

    def run_tests(self, module: Module | None = None) -> str:
        """Return what the test runner prints: a traceback for each broken function."""
        modules = self._project.modules if module is None else [module]
        total = sum(len(m.functions) * 3 for m in modules)
        broken = [(m, f) for m in modules for f in m.functions if f.broken]
        self._runs += 1
        seconds = f"{self._runs % 7}.{self._random.randrange(100):02d}s"
        head = [f"collected {total} items", ""]
        head += [f"{m.test_path} {_dots(m.functions)}" for m in modules]
        if not broken:
            return "\n".join([*head, "", f"===== {total} passed in {seconds} ====="])
        traces = [line for m, f in broken for line in _traceback(m, f)]
        summary = [f"FAILED {m.test_path}::test_{f.name}" for m, f in broken]
        tail = f"===== {len(broken)} failed, {total - len(broken)} passed in {seconds} ====="
        return "\n".join([*head, "", "===== FAILURES =====", *traces, *summary, tail])

    def log(self, code: str, lines: int) -> str:
        """Return a long service log with one line in it that matters."""
        important = self._random.randrange(lines)
        start = self._random.randrange(10_000, 90_000)
        return "\n".join(
            _important(start, code) if n == important else _routine(start, n) for n in range(lines)
        )


def todo_text(items: Sequence[str], done: int) -> str:
    """Return a todo list as the tool shows it."""
    return "\n".join(f"[{'x' if n < done else ' '}] {item}" for n, item in enumerate(items))


def _edited(module: Module, new: str) -> str:
    line = module.text.count("\n", 0, module.text.index(new)) + 1
    return f"Edited {module.path}: 1 replacement at line {line}."


def _dots(functions: Sequence[Function]) -> str:
    return "".join("F.." if function.broken else "..." for function in functions)


def _traceback(module: Module, function: Function) -> list[str]:
    return [
        f"_____ test_{function.name} _____",
        "",
        f"    def test_{function.name}() -> None:",
        f">       assert {function.name}(3) == {3 * function.wanted}",
        f"E       assert {3 * function.value} == {3 * function.wanted}",
        f"E        +  where {3 * function.value} = {function.name}(3)",
        "",
        f"{module.test_path}: AssertionError",
    ]


def _important(start: int, code: str) -> str:
    return f"{start} ERROR worker-3 request {code} failed: upstream closed the connection"


def _routine(start: int, n: int) -> str:
    job = (start * 31 + n * 17) % 99_991
    return f"{start + n} INFO worker-{n % 8} handled job {job} in {n % 40 + 3} ms"
