"""House rules that a machine can hold; what they allow may only shrink."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tools.requirement_scan import ROOT

SOURCE = ROOT / "src" / "ctxgc"

# Spelled in pieces, so that this file does not hold what it forbids.
FORBIDDEN = [
    "pypi" + ".org",
    "python" + "hosted",
    "npm" + "js.",
    "/work" + "/main",
    "/work" + "/shared",
    "/opt" + "/pypi",
    "/opt" + "/wheels",
    "/root" + "/.",
]

SPEAKERS = {"cli", "demo", "demo.py"}

FACES = sorted(p for p in SOURCE.rglob("__init__.py") if "lazy(" in p.read_text(encoding="utf-8"))

IMPURE_CALLS = {"datetime.now", "datetime.today", "datetime.utcnow", "date.today", "open", "input"}
IMPURE_MODULES = {
    "asyncio", "http", "io", "logging", "os", "pathlib", "random", "secrets", "shutil", "socket",
    "sqlite3", "subprocess", "tempfile", "threading", "time", "urllib", "uuid",
}  # fmt: skip


@cache
def tracked() -> tuple[Path, ...]:
    """Return the files that git tracks."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    return tuple(ROOT / name for name in listing.stdout.split("\0") if (ROOT / name).is_file())


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _python() -> Iterator[Path]:
    return (path for path in tracked() if path.suffix == ".py")


def test_no_tracked_file_names_a_package_registry_or_a_path_of_one_machine() -> None:
    found = [
        f"{_name(path)}: {text}"
        for path in tracked()
        for text in FORBIDDEN
        if text.encode() in path.read_bytes()
    ]
    assert found == []


def test_every_folder_of_the_source_is_a_package() -> None:
    folders = {path.parent for path in SOURCE.rglob("*.py")}
    assert sorted(_name(f) for f in folders if not (f / "__init__.py").is_file()) == []


def test_imports_point_one_way() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout


def test_no_two_classes_have_the_same_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(_name(path))
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_no_name_of_a_file_is_given_twice() -> None:
    """The second would replace the first for both of its users."""
    twice = [
        f"{_name(path)}: {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for name, times in Counter(_given(_tree(path))).items()
        if times > 1
    ]
    assert twice == []


def test_a_room_is_entered_by_its_face() -> None:
    """Only the files of a room import its files; everyone else imports what its face offers."""
    deep = [
        f"{_name(path)}: {module}"
        for path in sorted(SOURCE.rglob("*.py"))
        for module in _imported_modules(path)
        if module.startswith("ctxgc.") and _room(module) != _room_of(path) and not _is_face(module)
    ]
    assert deep == []


@pytest.mark.parametrize("face", FACES, ids=lambda path: path.parent.name)
def test_a_face_offers_what_it_declares_and_no_name_of_a_file(face: Path) -> None:
    package = ".".join(face.parent.relative_to(SOURCE.parent).parts)
    declared = {
        alias.name: node.module
        for node in ast.walk(_tree(face))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ctxgc.")
        for alias in node.names
        if alias.name != "lazy"
    }
    offered = importlib.import_module(package)
    assert set(offered.__all__) == set(declared)
    found = {name: getattr(importlib.import_module(home), name) for name, home in declared.items()}
    assert {name: getattr(offered, name) for name in declared} == found
    files = {path.stem for path in face.parent.iterdir()}
    assert set(declared) & files == set()


def test_nobody_touches_the_private_attributes_of_a_session() -> None:
    """`session.inspect()` shows the inside of a session to tests, tools and the other rooms."""
    page = SOURCE / "session" / "session.py"
    private = {name for name, owner in _attributes(page) if owner == "self" and _is_private(name)}
    assert private
    touched = [
        f"{_name(path)}: {owner}.{name}"
        for path in _python()
        if path != page
        for name, owner in _attributes(path)
        if name in private and owner != "self"
    ]
    assert touched == []


def _attributes(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each attribute that a file uses, and what it is an attribute of."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Attribute):
            yield node.attr, ast.unparse(node.value)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@pytest.mark.parametrize("face", FACES, ids=lambda path: path.parent.name)
def test_a_face_names_files_that_exist(face: Path) -> None:
    """Its first words say what each file of the room is for; words in backticks are files or names."""
    named = set(re.findall(r"`([a-z][a-z_]*)`", ast.get_docstring(_tree(face)) or ""))
    package = ".".join(face.parent.relative_to(SOURCE.parent).parts)
    known = {path.stem for path in [*face.parent.rglob("*.py"), *SOURCE.iterdir()]}
    folders = {path.name for path in face.parent.iterdir() if path.is_dir()}
    assert named - known - folders - set(importlib.import_module(package).__all__) == set()


def test_only_the_command_line_and_the_demo_print() -> None:
    quiet = (p for p in SOURCE.rglob("*.py") if p.relative_to(SOURCE).parts[0] not in SPEAKERS)
    assert [place for path in quiet for place, call in _calls(path) if call == "print"] == []


def test_the_cellar_has_no_clock_no_chance_no_files_and_no_network() -> None:
    """Only a segment made by hand, without id or time, gets them from the machine."""
    core = sorted((SOURCE / "core").rglob("*.py"))
    assert {_name(path) for path in core if _is_impure(path)} <= {"src/ctxgc/core/segment.py"}


def _is_impure(path: Path) -> bool:
    called = {call for _, call in _calls(path)}
    return bool(called & IMPURE_CALLS or _imported(path) & IMPURE_MODULES)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _given(module: ast.Module) -> Iterator[str]:
    """Yield the names that a file gives to functions, classes and values, overloads once."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            if "overload" not in map(ast.unparse, node.decorator_list):
                yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def _room(module: str) -> str:
    return module.split(".")[1]


def _room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _is_face(module: str) -> bool:
    """Tell whether others may import from a module: a room, a file without one, or transcripts."""
    return module.count(".") == 1 or module == "ctxgc.wire.transcripts"


def _imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""


def _calls(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the dotted name of each call in a file."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).removeprefix("datetime.datetime").lstrip(".")
            yield f"{_name(path)}:{node.lineno}", name


def _imported(path: Path) -> set[str]:
    """Return the top-level packages that a file imports."""
    names: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}
