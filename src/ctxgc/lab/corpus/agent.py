"""The scripted agent: a project, a recorder, and what it remembers of its own work."""

from __future__ import annotations

from collections.abc import Sequence

from ctxgc.lab.corpus import tools
from ctxgc.lab.corpus.functions import Function
from ctxgc.lab.corpus.project import Module, Project
from ctxgc.lab.corpus.recorder import Call, Recorder
from ctxgc.lab.corpus.words import Chance


class Agent:
    """Works on a project through tools, each call of which is recorded."""

    def __init__(self, chance: Chance, project: Project, recorder: Recorder) -> None:
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
            Call("Read", {"file_path": path}, tools.read(self.project, path)) for path in paths
        )
        self.recorder.call(text, *calls)

    def read_part(self, text: str | None, path: str, part: str, lines: int = 30) -> None:
        """Read the lines around a part of a file."""
        at = max(1, self.project.line_of(path, part) - lines // 3)
        arguments = {"file_path": path, "offset": at, "limit": lines}
        answer = tools.read(self.project, path, at, lines)
        self.recorder.call(text, Call("Read", arguments, answer))

    def grep(self, text: str | None, pattern: str) -> None:
        """Search all files."""
        arguments = {
            "pattern": pattern, "path": self.project.root, "output_mode": "content", "-n": True,
        }  # fmt: skip
        self.recorder.call(text, Call("Grep", arguments, tools.grep(self.project, pattern)))

    def edit(self, text: str | None, path: str, old: str, new: str) -> None:
        """Replace a text that was seen in a file before."""
        arguments = {"file_path": path, "old_string": old, "new_string": new}
        self.edited.append(path)
        self.recorder.call(text, Call("Edit", arguments, tools.edit(self.project, path, old, new)))

    def write(self, text: str | None, path: str, body: str) -> None:
        """Make a file."""
        self.read_files.add(path)
        self.edited.append(path)
        arguments = {"file_path": path, "content": body}
        self.recorder.call(text, Call("Write", arguments, tools.write(self.project, path, body)))

    def bash(self, text: str | None, command: str, answer: str, about: str) -> None:
        """Run a command."""
        self.recorder.call(text, Call("Bash", {"command": command, "description": about}, answer))

    def test(
        self, text: str | None, module: Module | None = None, *, verbose: bool = False
    ) -> None:
        """Run the tests of a module, or all."""
        where = f" {module.tests.removeprefix(self.project.root + '/')}" if module else ""
        tests = module.tests if module else None
        answer = tools.run_tests(self.project, tests, verbose=verbose)
        command = f"cd {self.project.root} && python -m pytest{where}{' -v' if verbose else ' -q'}"
        self.bash(text, command, answer, "Run the tests")

    def todo(self, items: Sequence[str], done: int) -> None:
        """Write the todo list."""
        answer = (
            "Todos have been modified successfully. Keep using the list to track your progress."
        )
        arguments = {"todos": tools.todos(items, done)}
        self.recorder.call(None, Call("TodoWrite", arguments, answer))

    def commit(self, title: str) -> str:
        """Commit what was edited, and return the name of the commit."""
        files = sorted(set(self.edited))
        self.edited.clear()
        answer = tools.commit(self.project, title, files)
        self.bash(None, f'git add -A && git commit -m "{title}"', answer, "Commit the work")
        sha = self.project.commits[0][0]
        self.memories.append(f"{title} ({sha})")
        return sha

    def fix(self, text: str, module: Module, function: Function) -> None:
        """Take the fault out of a function, quoting the lines around it as they were read."""
        text = f"{text}\n\n{self._reasons(module, function)}"
        around = function.faulty_text.splitlines(keepends=True)
        at = next(n for n, line in enumerate(around) if line == function.wrong)
        first = max(0, at - self.chance.randrange(0, 3))
        old = "".join(around[first : at + self.chance.randrange(1, 4)]).rstrip("\n")
        new = old.replace(function.wrong.rstrip("\n"), function.right.rstrip("\n"))
        self.edit(text, module.path, old, new)

    def _reasons(self, module: Module, function: Function) -> str:
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
