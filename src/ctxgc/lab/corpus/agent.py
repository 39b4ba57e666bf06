"""The scripted agent: a project, a recorder, and what it remembers of its own work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ctxgc.lab.corpus.project import PLACES, Chance, CorpusFunction, CorpusModule, CorpusProject

# -- The recorder: writes down what the agent says and calls, as chat-completions messages with ti


Message = dict[str, Any]

_BEGINNING = 1_770_000_000.0


class CorpusCall(NamedTuple):
    """A call and its answer."""

    name: str
    arguments: dict[str, Any]
    answer: str


class Recorder:
    """Collects the messages of one run; its clock runs as an agent's would."""

    def __init__(self, chance: Chance, system: str) -> None:
        self._chance = chance
        self._now = _BEGINNING + chance.randrange(10_000_000)
        self.messages: list[Message] = []
        self.times: list[float] = []
        self.chars = 0
        self._add({"role": "system", "content": system}, 0)

    def user(self, text: str) -> None:
        """Let the user speak: after a while, now and then after a long one."""
        pause = self._chance.randrange(20, 240)
        if self._chance.happens(0.12):
            pause += self._chance.randrange(400, 5_000)
        self._add({"role": "user", "content": text}, pause)

    def say(self, text: str) -> None:
        """Let the agent speak and stop."""
        self._add({"role": "assistant", "content": text}, self._chance.randrange(3, 20))

    def call(self, text: str | None, *calls: CorpusCall) -> None:
        """Let the agent call tools, all at once, and hear their answers."""
        ids = [f"toolu_{self._chance.hexes(20)}" for _ in calls]
        made = [_made(call_id, call) for call_id, call in zip(ids, calls, strict=True)]
        asked = {"role": "assistant", "content": text, "tool_calls": made}
        self._add(asked, self._chance.randrange(3, 25))
        for call_id, call in zip(ids, calls, strict=True):
            answer = {"role": "tool", "tool_call_id": call_id, "content": call.answer}
            self._add(answer, self._chance.randrange(1, 9))

    def _add(self, message: Message, seconds: int) -> None:
        self._now += seconds
        self.messages.append(message)
        self.times.append(self._now)
        self.chars += len(message.get("content") or "")
        self.chars += sum(_length(call) for call in message.get("tool_calls", ()))


def _made(call_id: str, call: CorpusCall) -> Message:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _length(call: Message) -> int:
    return len(call["function"]["arguments"]) + 20


def bullet(lines: Sequence[str]) -> str:
    """Return lines as a list."""
    return "\n".join(f"- {line}" for line in lines)


# -- The tools of the scripted agent: what each answers, made from the files as they are now


READ_LINES = 2000


def read(project: CorpusProject, path: str, offset: int = 1, limit: int = READ_LINES) -> str:
    """Return lines of a file with their numbers."""
    lines = project.files[path].splitlines()[offset - 1 : offset - 1 + limit]
    return "\n".join(f"{number:>6}→{line}" for number, line in enumerate(lines, offset))


def grep(project: CorpusProject, pattern: str) -> str:
    """Return the lines of all files that hold a text."""
    found = [
        f"{path}:{number}:{line}"
        for path, text in sorted(project.files.items())
        for number, line in enumerate(text.splitlines(), 1)
        if pattern in line
    ]
    return "\n".join(found) or "No matches found"


def edit(project: CorpusProject, path: str, old: str, new: str) -> str:
    """Replace a text in a file and return the lines around it."""
    text = project.files[path]
    start = text[: text.index(old)].count("\n")
    project.files[path] = text.replace(old, new, 1)
    around = read(project, path, max(1, start - 3), new.count("\n") + 9)
    return (
        f"The file {path} has been updated. Here's the result of running `cat -n` on a snippet of "
        f"the edited file:\n{around}"
    )


def write(project: CorpusProject, path: str, text: str) -> str:
    """Make a file."""
    project.files[path] = text
    return f"File created successfully at: {path}"


def run_tests(project: CorpusProject, tests: str | None, *, verbose: bool = False) -> str:
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


def commit(project: CorpusProject, title: str, files: Sequence[str]) -> str:
    """Commit, and return what git prints."""
    sha = project.chance.hexes(8)
    project.commits.insert(0, (sha, title))
    inserted = project.chance.randrange(3, 60)
    return (
        f"[main {sha}] {title}\n {len(files)} files changed, {inserted} insertions(+), "
        f"{inserted // 2} deletions(-)"
    )


def git_log(project: CorpusProject, count: int = 12) -> str:
    """Return the newest commits, one on each line."""
    return "\n".join(f"{sha} {title}" for sha, title in project.commits[:count])


def todos(items: Sequence[str], done: int) -> list[dict[str, str]]:
    """Return the entries of a todo list of which so many are done."""
    states = ["completed"] * done + ["in_progress"] + ["pending"] * len(items)
    return [
        {"content": item, "status": state, "activeForm": f"Working on: {item}"}
        for item, state in zip(items, states, strict=False)
    ]


def service_log(
    chance: Chance, project: CorpusProject, fault: str, request: str, lines: int
) -> str:
    """Return a long log in which one request fails; all other lines are routine."""
    at = chance.randrange(lines // 3, lines - 10)
    written = []
    now = datetime(2026, 2, 3, tzinfo=UTC) + timedelta(seconds=chance.randrange(40_000))
    for number in range(lines):
        now += timedelta(seconds=chance.randrange(1, 4))
        said = _log_line(chance, project, fault, request, number - at)
        written.append(f"{now:%Y-%m-%dT%H:%M:%SZ} {said}")
    return "\n".join(written)


def _log_line(chance: Chance, project: CorpusProject, fault: str, request: str, after: int) -> str:
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


def _progress(project: CorpusProject, module: CorpusModule, verbose: bool) -> str:
    name = module.tests.removeprefix(f"{project.root}/")
    marks = ["F" if project.is_broken(module, f) else "." for f in module.functions]
    if not verbose:
        return f"{name} {''.join(marks)}"
    words = {"F": "FAILED", ".": "PASSED"}
    return "\n".join(
        f"{_node(project, module, function)} {words[mark]}"
        for function, mark in zip(module.functions, marks, strict=True)
    )


def _failure(project: CorpusProject, module: CorpusModule, function: CorpusFunction) -> str:
    path = module.path.removeprefix(f"{project.root}/")
    line = project.fault_line(module, function)
    body = "\n".join(f"    {text}" for text in function.faulty_text.splitlines())
    return (
        f"{'_' * 20} test_{function.name} {'_' * 20}\n\n"
        f"    def test_{function.name}() -> None:\n>       assert {function.trial} == {function.expected}\n"
        f"E       {_why(function)}\n\n{body}\n\n{path}:{line}: in {function.name}\n"
    )


def _why(function: CorpusFunction) -> str:
    if "Error" in function.got:
        return function.got
    return f"AssertionError: assert {function.got} == {function.expected}"


def _node(project: CorpusProject, module: CorpusModule, function: CorpusFunction) -> str:
    return f"{module.tests.removeprefix(project.root + '/')}::test_{function.name}"


class Agent:
    """Works on a project through tools, each call of which is recorded."""

    def __init__(self, chance: Chance, project: CorpusProject, recorder: Recorder) -> None:
        self.chance = chance
        self.project = project
        self.recorder = recorder
        self.read_files: set[str] = set()  # whole, so that any part of them can be quoted
        self.memories: list[str] = []
        self.edited: list[str] = []

    def read(self, text: str | None, *paths: str) -> None:
        """Read whole files."""
        self.read_files.update(paths)
        calls = (
            CorpusCall("Read", {"file_path": path}, read(self.project, path)) for path in paths
        )
        self.recorder.call(text, *calls)

    def read_part(self, text: str | None, path: str, part: str, lines: int = 30) -> None:
        """Read the lines around a part of a file."""
        at = max(1, self.project.line_of(path, part) - lines // 3)
        arguments = {"file_path": path, "offset": at, "limit": lines}
        answer = read(self.project, path, at, lines)
        self.recorder.call(text, CorpusCall("Read", arguments, answer))

    def grep(self, text: str | None, pattern: str) -> None:
        """Search all files."""
        arguments = {
            "pattern": pattern, "path": self.project.root, "output_mode": "content", "-n": True,
        }  # fmt: skip
        self.recorder.call(text, CorpusCall("Grep", arguments, grep(self.project, pattern)))

    def edit(self, text: str | None, path: str, old: str, new: str) -> None:
        """Replace a text that was seen in a file before."""
        arguments = {"file_path": path, "old_string": old, "new_string": new}
        self.edited.append(path)
        self.recorder.call(text, CorpusCall("Edit", arguments, edit(self.project, path, old, new)))

    def write(self, text: str | None, path: str, body: str) -> None:
        """Make a file."""
        self.read_files.add(path)
        self.edited.append(path)
        arguments = {"file_path": path, "content": body}
        self.recorder.call(text, CorpusCall("Write", arguments, write(self.project, path, body)))

    def bash(self, text: str | None, command: str, answer: str, about: str) -> None:
        """Run a command."""
        self.recorder.call(
            text, CorpusCall("Bash", {"command": command, "description": about}, answer)
        )

    def test(
        self, text: str | None, module: CorpusModule | None = None, *, verbose: bool = False
    ) -> None:
        """Run the tests of a module, or all."""
        where = f" {module.tests.removeprefix(self.project.root + '/')}" if module else ""
        tests = module.tests if module else None
        answer = run_tests(self.project, tests, verbose=verbose)
        command = f"cd {self.project.root} && python -m pytest{where}{' -v' if verbose else ' -q'}"
        self.bash(text, command, answer, "Run the tests")

    def todo(self, items: Sequence[str], done: int) -> None:
        """Write the todo list."""
        answer = (
            "Todos have been modified successfully. Keep using the list to track your progress."
        )
        arguments = {"todos": todos(items, done)}
        self.recorder.call(None, CorpusCall("TodoWrite", arguments, answer))

    def commit(self, title: str) -> str:
        """Commit what was edited, and return the name of the commit."""
        files = sorted(set(self.edited))
        self.edited.clear()
        answer = commit(self.project, title, files)
        self.bash(None, f'git add -A && git commit -m "{title}"', answer, "Commit the work")
        sha = self.project.commits[0][0]
        self.memories.append(f"{title} ({sha})")
        return sha

    def fix(self, text: str, module: CorpusModule, function: CorpusFunction) -> None:
        """Take the fault out of a function, quoting the lines around it as they were read."""
        text = f"{text}\n\n{self._reasons(module, function)}"
        around = function.faulty_text.splitlines(keepends=True)
        at = next(n for n, line in enumerate(around) if line == function.wrong)
        first = max(0, at - self.chance.randrange(0, 3))
        old = "".join(around[first : at + self.chance.randrange(1, 4)]).rstrip("\n")
        new = old.replace(function.wrong.rstrip("\n"), function.right.rstrip("\n"))
        self.edit(text, module.path, old, new)

    def _reasons(self, module: CorpusModule, function: CorpusFunction) -> str:
        """Return what the agent thinks before an edit: names of things that it read."""
        others = self.chance.some([f for f in module.functions if f != function], 2)
        line = self.project.fault_line(module, function)
        shown = function.wrong.strip()
        asides = " and ".join(f"`{other.name}` (`{other.trial}`)" for other in others)
        return (
            f"In {self.short(module.path)}:{line} it says `{shown}`, which `{function.trial}` trips "
            f"over. {module.constant} stays as it is. {asides or 'Nothing else'} in the same file "
            f"must not change: their tests in {self.short(module.tests)} pass today. The smallest "
            f"change is this one line, and `test_{function.name}` covers it."
        )

    def short(self, path: str) -> str:
        """Return a path as people write it."""
        return path.removeprefix(f"{self.project.root}/")
