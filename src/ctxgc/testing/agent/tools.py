"""The scripted agent's tools, and the steps that it takes with them.

A step is one message of the user, or one of the agent with its tool calls and their results, before it
is put into a provider's format. Each method of `Agent` runs tools on the project as it is now and
returns the step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from ctxgc.testing.agent.project import PLACES, Chance, Function, Module, Project

_READ_LINES = 2000


def _schema(name: str, about: str, **fields: str) -> dict[str, Any]:
    properties = {field: {"type": kind} for field, kind in fields.items()}
    parameters = {"type": "object", "properties": properties, "required": list(fields)}
    return {"name": name, "description": about, "parameters": parameters}


SCHEMAS = (
    _schema("Read", "Return a file, or a part of it, with line numbers.", file_path="string"),
    _schema("Grep", "Search all files for a text.", pattern="string"),
    _schema(
        "Edit", "Replace a text in a file.",
        file_path="string", old_string="string", new_string="string",
    ),
    _schema("Write", "Create a file.", file_path="string", content="string"),
    _schema("Bash", "Run a shell command.", command="string", description="string"),
    _schema("TodoWrite", "Replace the list of open work.", todos="array"),
)  # fmt: skip


@dataclass(frozen=True)
class AgentCall:
    """One tool call with what the tool returned."""

    name: str
    arguments: Mapping[str, Any]
    output: str
    failed: bool = False

    @cached_property
    def arguments_json(self) -> str:
        """The arguments as a model writes them."""
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class AgentStep:
    """One message of the user, or one of the agent with the results of its calls.

    `plants` are texts that appear here for the first time and may be needed again, `needs` are texts
    from earlier without which the step cannot be made.
    """

    role: str
    text: str = ""
    calls: tuple[AgentCall, ...] = ()
    plants: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def thinking(self) -> str:
        """What the agent thinks before its calls; empty for a step without calls."""
        names = ", ".join(call.name for call in self.calls)
        return f"Next: {names}. {self.text}".strip() if names else ""

    @property
    def size(self) -> int:
        """How many characters the step adds to a history, about."""
        calls = sum(len(call.output) + len(call.arguments_json) + 20 for call in self.calls)
        return len(self.text) + calls

    def one_by_one(self) -> list[AgentStep]:
        """Return the step as steps with at most one call each."""
        first, *others = [replace(self, calls=(call,)) for call in self.calls] or [self]
        return [first, *(AgentStep("assistant", calls=step.calls) for step in others)]


def user(text: str, *plants: str) -> AgentStep:
    """Return the step of a user who asks for something."""
    return AgentStep("user", text, plants=plants)


def say(text: str, *needs: str) -> AgentStep:
    """Return the step of an agent that answers without a call."""
    return AgentStep("assistant", text, needs=needs)


def instructions(project: Project) -> str:
    """Return the system text of the agent."""
    return (
        f"You are a coding agent. You work on {project.package} in {project.root} with the tools "
        "Read, Edit, Write, Grep, Bash and TodoWrite.\n\n"
        "- Read a file before you edit it. `old_string` must match the file exactly.\n"
        "- Run the tests after each change, and commit what passes.\n"
        "- Keep a todo list for work of several steps.\n"
        f"- The code is Python 3.12, in src/{project.package}, its tests in tests/.\n"
        "- Answer briefly; name files, functions and commits."
    )


class Agent:
    """Works on a project through tools; each method returns one step."""

    def __init__(self, chance: Chance, project: Project) -> None:
        self.chance = chance
        self.project = project
        self.read_files: set[str] = set()  # whole, so that any part of them can be quoted
        self.memories: list[tuple[str, str]] = []  # a text to find it by, and what is remembered
        self._edited: set[str] = set()

    def read(self, text: str, *paths: str) -> AgentStep:
        """Read whole files at once."""
        self.read_files.update(paths)
        return _calls(
            text,
            *(AgentCall("Read", {"file_path": path}, _lines(self.project, path)) for path in paths),
        )

    def read_part(self, text: str, path: str, part: str, lines: int = 30) -> AgentStep:
        """Read the lines around a part of a file."""
        at = max(1, self.project.line_of(path, part) - lines // 3)
        arguments = {"file_path": path, "offset": at, "limit": lines}
        return _calls(text, AgentCall("Read", arguments, _lines(self.project, path, at, lines)))

    def grep(self, text: str, pattern: str) -> AgentStep:
        """Search all files."""
        arguments = {
            "pattern": pattern, "path": self.project.root, "output_mode": "content", "-n": True,
        }  # fmt: skip
        return _calls(text, AgentCall("Grep", arguments, _matches(self.project, pattern)))

    def edit(self, text: str, path: str, old: str, new: str) -> AgentStep:
        """Replace a text that was seen in a file before."""
        arguments = {"file_path": path, "old_string": old, "new_string": new}
        self._edited.add(path)
        return _calls(text, AgentCall("Edit", arguments, _edit(self.project, path, old, new)))

    def bash(self, text: str, command: str, output: str, about: str) -> AgentStep:
        """Run a command that prints `output`."""
        arguments = {"command": command, "description": about}
        return _calls(text, AgentCall("Bash", arguments, output))

    def test(self, text: str, module: Module | None = None, *, verbose: bool = False) -> AgentStep:
        """Run the tests of a module, or all; the call fails while a test fails."""
        where = f" {self.project.short(module.tests)}" if module else ""
        tests = module.tests if module else None
        command = f"cd {self.project.root} && python -m pytest{where}{' -v' if verbose else ' -q'}"
        arguments = {"command": command, "description": "Run the tests"}
        failed = bool(self.project.failing(tests))
        output = _test_run(self.project, tests, verbose=verbose)
        return _calls(text, AgentCall("Bash", arguments, output, failed))

    def todo(self, items: Sequence[str], done: int) -> AgentStep:
        """Write the todo list, of which the first `done` items are finished."""
        states = ["completed"] * done + ["in_progress"] + ["pending"] * len(items)
        todos = [
            {"content": item, "status": state, "activeForm": f"Working on: {item}"}
            for item, state in zip(items, states, strict=False)
        ]
        output = (
            "Todos have been modified successfully. Keep using the list to track your progress."
        )
        return _calls("", AgentCall("TodoWrite", {"todos": todos}, output))

    def commit(self, title: str) -> AgentStep:
        """Commit what was edited; the commit is the newest of the project then, and remembered."""
        sha = self.project.commit(title)
        inserted = self.chance.randrange(3, 60)
        output = (
            f"[main {sha}] {title}\n {len(self._edited)} files changed, {inserted} insertions(+), "
            f"{inserted // 2} deletions(-)"
        )
        self._edited.clear()
        self.memories.append((sha, f"{title} ({sha})"))
        step = self.bash("", f'git add -A && git commit -m "{title}"', output, "Commit the work")
        return replace(step, plants=(sha,))

    def fix(self, text: str, module: Module, function: Function) -> AgentStep:
        """Take the fault out of a function, quoting the lines around it as they were read."""
        text = f"{text}\n\n{self._reasons(module, function)}"
        around = function.faulty_text.splitlines(keepends=True)
        at = around.index(function.wrong)
        first = max(0, at - self.chance.randrange(0, 3))
        end = at + self.chance.randrange(1, 4)
        old = "".join(around[first:end]).rstrip("\n")
        while self.project.files[module.path].count(old) > 1:  # an edit must name one place
            first -= 1
            old = "".join(around[first:end]).rstrip("\n")
        new = old.replace(function.wrong.rstrip("\n"), function.right.rstrip("\n"))
        return self.edit(text, module.path, old, new)

    def append(self, text: str, path: str, last: str, added: str) -> AgentStep:
        """Write a function after another one, `last`, quoting the two lines at its end.

        Several functions may end alike; then it comes after the first of them.
        """
        end = "\n".join(last.rstrip("\n").splitlines()[-2:])
        return self.edit(text, path, end, f"{end}\n\n\n{added.rstrip()}")

    def _reasons(self, module: Module, function: Function) -> str:
        """Return what the agent says before an edit: names of things that it read."""
        short = self.project.short
        others = self.chance.some([f for f in module.functions if f != function], 2)
        line = self.project.fault_line(module, function)
        asides = " and ".join(f"`{other.name}` (`{other.trial}`)" for other in others)
        return (
            f"In {short(module.path)}:{line} it says `{function.wrong.strip()}`, which "
            f"`{function.trial}` trips over. {module.constant} stays as it is. "
            f"{asides or 'Nothing else'} in the same file must not change: their tests in "
            f"{short(module.tests)} pass today. The smallest change is this one line, and "
            f"`test_{function.name}` covers it."
        )


def _calls(text: str, *calls: AgentCall) -> AgentStep:
    return AgentStep("assistant", text, calls)


def _lines(project: Project, path: str, offset: int = 1, limit: int = _READ_LINES) -> str:
    """Return lines of a file with their numbers."""
    lines = project.files[path].splitlines()[offset - 1 : offset - 1 + limit]
    return "\n".join(f"{number:>6}→{line}" for number, line in enumerate(lines, offset))


def _matches(project: Project, pattern: str) -> str:
    """Return the lines of all files that hold a text."""
    found = [
        f"{path}:{number}:{line}"
        for path, text in sorted(project.files.items())
        for number, line in enumerate(text.splitlines(), 1)
        if pattern in line
    ]
    return "\n".join(found) or "No matches found"


def _edit(project: Project, path: str, old: str, new: str) -> str:
    """Replace a text in a file and return the lines around it."""
    text = project.files[path]
    start = text[: text.index(old)].count("\n")
    project.files[path] = text.replace(old, new, 1)
    around = _lines(project, path, max(1, start - 3), new.count("\n") + 9)
    return (
        f"The file {path} has been updated. Here's the result of running `cat -n` on a snippet of "
        f"the edited file:\n{around}"
    )


def _test_run(project: Project, tests: str | None, *, verbose: bool = False) -> str:
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
        parts += [f"FAILED {_test_id(project, m, f)} - {_error(f)}" for m, f in broken]
    passed = count - len(broken)
    said = f"{len(broken)} failed, {passed} passed" if broken else f"{passed} passed"
    seconds = project.chance.randrange(40, 900) / 100
    return "\n".join([*parts, f"{'=' * 24} {said} in {seconds:.2f}s {'=' * 24}"])


def _progress(project: Project, module: Module, verbose: bool) -> str:
    marks = ["F" if project.is_broken(module, f) else "." for f in module.functions]
    if not verbose:
        return f"{project.short(module.tests)} {''.join(marks)}"
    words = {"F": "FAILED", ".": "PASSED"}
    return "\n".join(
        f"{_test_id(project, module, function)} {words[mark]}"
        for function, mark in zip(module.functions, marks, strict=True)
    )


def _failure(project: Project, module: Module, function: Function) -> str:
    line = project.fault_line(module, function)
    body = "\n".join(f"    {text}" for text in function.faulty_text.splitlines())
    return (
        f"{'_' * 20} test_{function.name} {'_' * 20}\n\n"
        f"    def test_{function.name}() -> None:\n>       assert {function.trial} == {function.expected}\n"
        f"E       {_error(function)}\n\n{body}\n\n{project.short(module.path)}:{line}: in {function.name}\n"
    )


def _error(function: Function) -> str:
    if "Error" in function.got:
        return function.got
    return f"AssertionError: assert {function.got} == {function.expected}"


def _test_id(project: Project, module: Module, function: Function) -> str:
    return f"{project.short(module.tests)}::test_{function.name}"


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
