"""Find which tests claim which requirements, by reading the test files without importing them.

Reading works for partial runs and for every worker alike, and sees tests that a run would skip.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, order=True)
class Claim:
    """A test that claims to prove a requirement. `test` is empty where the whole file claims it."""

    requirement: str
    file: str
    test: str
    line: int


class ClaimError(ValueError):
    """A `requirement(...)` whose ids cannot be read from the source, or that marks no test."""


def scan(root: Path = ROOT) -> list[Claim]:
    """Return every claim in `root/tests`, ordered by requirement, file and test."""
    files = sorted((root / "tests").rglob("test_*.py"))
    return sorted(claim for path in files for claim in scan_file(path, root))


def scan_file(path: Path, root: Path) -> list[Claim]:
    """Return the claims of one test file; a claim that marks no test raises ClaimError."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    file = path.relative_to(root).as_posix()
    claims: list[Claim] = []
    seen: set[ast.Call] = set()
    for test, call in _owned_calls(tree):
        seen.add(call)
        claims.extend(Claim(name, file, test, call.lineno) for name in _ids(call, file))
    for call in _calls(tree):
        if call not in seen:
            raise ClaimError(f"{file}:{call.lineno}: requirement() marks no test")
    return claims


def _owned_calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Yield each call with the test that it marks: a function, a class, or the whole file."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if node.name.lower().startswith("test"):
                    marks = node.decorator_list
                    yield from ((node.name, call) for mark in marks for call in _calls(mark))
            case ast.Assign(targets=[ast.Name(id="pytestmark")]):
                yield from (("", call) for call in _calls(node))
            case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("Test"):
                yield from ((name, call) for call in _calls(node))


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="requirement")):
                yield node


def _ids(call: ast.Call, file: str) -> Iterator[str]:
    for argument in call.args:
        if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
            raise ClaimError(f"{file}:{call.lineno}: requirement() takes string literals only")
        yield argument.value
