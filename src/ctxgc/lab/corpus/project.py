"""The project that the scripted agent works on: files that it really reads, edits and tests."""

from __future__ import annotations

from typing import NamedTuple

from ctxgc.lab.corpus.functions import Function, make_function
from ctxgc.lab.corpus.words import NOUNS, PACKAGES, PEOPLE, PLACES, Chance


class Module(NamedTuple):
    """A module: where it and its tests are, its functions, and the name of its constant."""

    path: str
    tests: str
    constant: str
    functions: list[Function]


class Project:
    """A folder in the mind: files by path, changed by whoever works on them."""

    def __init__(self, chance: Chance, modules: int) -> None:
        self.chance = chance
        self.package = chance.choice(PACKAGES)
        self.root = f"/home/dev/{self.package}"
        self.files: dict[str, str] = {}
        self.modules = [self._module(noun) for noun in chance.some(NOUNS, modules)]
        self.commits = [(chance.hexes(8), f"Import {self.package} {n}.0") for n in (3, 2, 1)]
        self.files[f"{self.root}/README.md"] = self._readme()
        self.files[f"{self.root}/settings.toml"] = self._settings()

    def functions(self) -> list[tuple[Module, Function]]:
        """Return all functions, each with its module."""
        return [(module, function) for module in self.modules for function in module.functions]

    def break_function(self, module: Module, function: Function) -> None:
        """Put the fault of a function into its file."""
        text = self.files[module.path]
        self.files[module.path] = text.replace(function.text, function.faulty_text)

    def is_broken(self, module: Module, function: Function) -> bool:
        """Tell whether the file has the fault now."""
        return function.faulty_text in self.files[module.path]

    def failing(self, tests: str | None = None) -> list[tuple[Module, Function]]:
        """Return the functions whose tests fail now, of one test file or of all."""
        return [
            (module, function)
            for module, function in self.functions()
            if tests in (None, module.tests) and self.is_broken(module, function)
        ]

    def line_of(self, path: str, part: str) -> int:
        """Return the number of the line where a part of a file begins."""
        return self.files[path][: self.files[path].index(part)].count("\n") + 1

    def fault_line(self, module: Module, function: Function) -> int:
        """Return the number of the line that is wrong in a broken function."""
        before = function.faulty_text[: function.faulty_text.index(function.wrong)]
        return self.line_of(module.path, function.faulty_text) + before.count("\n")

    def _module(self, noun: str) -> Module:
        chance = self.chance
        path = f"{self.root}/src/{self.package}/{noun}s.py"
        tests = f"{self.root}/tests/test_{noun}s.py"
        constant = chance.constant()
        names = sorted({chance.symbol() for _ in range(chance.randrange(6, 12))})
        module = Module(path, tests, constant, [make_function(chance, n, constant) for n in names])
        self.files[path] = self._module_text(noun, module)
        self.files[tests] = self._test_text(noun, module)
        return module

    def _module_text(self, noun: str, module: Module) -> str:
        chance = self.chance
        head = (
            f'"""Everything about {noun}s: kept by {chance.choice(PEOPLE)}, '
            f'used in {chance.choice(PLACES)}."""\n'
            "\nfrom __future__ import annotations\n\nimport logging\n"
            "from collections.abc import Callable, Iterable\n\n"
            f"from {self.package}.records import Record, State\n\n"
            f'log = logging.getLogger("{self.package}.{noun}s")\n\n'
            f"{module.constant} = {chance.randrange(1000, 9999)}\n"
        )
        return head + "".join(f"\n\n{function.text}" for function in module.functions)

    def _test_text(self, noun: str, module: Module) -> str:
        names = ", ".join(function.name for function in module.functions)
        head = (
            f'"""Tests of {noun}s."""\n\nfrom {self.package}.{noun}s import {names}\n'
            f"from tests.records import TABLE, refuse\n"
        )
        return head + "".join(f"\n\n{trial_text(function)}" for function in module.functions)

    def _readme(self) -> str:
        rows = "\n".join(
            f"- `{module.path.removeprefix(self.root + '/')}` holds {len(module.functions)} functions;"
            f" the limit is `{module.constant}`"
            for module in self.modules
        )
        return f"# {self.package}\n\nFreight, from the gate to the depot.\n\n{rows}\n"

    def _settings(self) -> str:
        lines = [
            f'[{m.constant.lower()}]\nhost = "10.4.{n}.17"\n' for n, m in enumerate(self.modules)
        ]
        return "".join(f"{line}port = {self.chance.randrange(4000, 9000)}\n\n" for line in lines)


def trial_text(function: Function) -> str:
    """Return the test of a function."""
    expected = function.expected
    return f"def test_{function.name}() -> None:\n    assert {function.trial} == {expected}\n"
