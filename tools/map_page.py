"""Write the part of docs/map.md that comes from the code: the rooms, their files and their faces.

python -m tools.map_page            write it
python -m tools.map_page --check    exit 1 when the page on disk is not current
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.requirement_scan import ROOT

SOURCE = ROOT / "src" / "ctxgc"
PAGE = ROOT / "docs" / "map.md"


def rooms() -> list[str]:
    """Return the rooms and single files of the house, from the doors down, as imports point."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    named = [name for layer in layers for name in re.findall(r"\w+", layer)]
    return [name for name in named if (SOURCE / name).is_dir() or _is_public(SOURCE / name)]


def _is_public(path: Path) -> bool:
    return path.with_suffix(".py").is_file() and not path.name.startswith("__")


def room(name: str) -> str:
    """Return what a room is for and what its files are, as Markdown."""
    if not (SOURCE / name).is_dir():
        file = SOURCE / f"{name}.py"
        return f"### `{name}.py`\n\n{_docstring(file)} ([file]({_link(file)}))\n"
    face = SOURCE / name / "__init__.py"
    offers = _offers(face)
    lines = [f"### {name}", "", _docstring(face), "", "| file | what it is | on the face |"]
    lines.append("|---|---|---|")
    files = (path for path in (SOURCE / name).rglob("*.py") if not path.name.startswith("__"))
    lines.extend(_row(path, SOURCE / name, offers) for path in sorted(files))
    if passed := _passed_on(face):
        lines += ["", f"Passed on from rooms below: {', '.join(f'`{each}`' for each in passed)}."]
    return "\n".join(lines) + "\n"


def _row(path: Path, folder: Path, offers: dict[str, list[str]]) -> str:
    inside = path.relative_to(folder).as_posix()
    names = offers.get(inside.removesuffix(".py").replace("/", "."), [])
    shown = ", ".join(f"`{name}`" for name in names)
    says = _docstring(path).partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    return f"| [{inside}]({_link(path)}) | {says} | {shown} |"


def _link(path: Path) -> str:
    return f"../{path.relative_to(ROOT).as_posix()}"


def _docstring(path: Path) -> str:
    return ast.get_docstring(tree_of(path)) or ""


def _offers(face: Path) -> dict[str, list[str]]:
    """Return the names that a face offers, under the file of the room that defines them."""
    package = ".".join(face.parent.relative_to(SOURCE.parent).parts)
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree_of(face)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}."):
            home = (node.module or "").removeprefix(f"{package}.")
            found.setdefault(home, []).extend(alias.name for alias in node.names)
    return {home: list(dict.fromkeys(names)) for home, names in found.items()}


def _passed_on(face: Path) -> list[str]:
    """Return the names of other rooms that a face offers."""
    package = ".".join(face.parent.relative_to(SOURCE.parent).parts)
    foreign = (
        node
        for node in ast.walk(tree_of(face))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("ctxgc.")
        and not f"{node.module}.".startswith(f"{package}.")
        and node.module != "ctxgc._lazy"
    )
    return sorted({alias.name for node in foreign for alias in node.names})


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the parsed source of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def defined_in(path: Path) -> set[str]:
    """Return the functions, classes, methods and names that a file defines, methods with their class."""
    return set(_defined(tree_of(path), ""))


def _defined(node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[str]:
    for child in node.body:
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from _defined(child, f"{prefix}{name}.")
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name


def render(page: str) -> str:
    """Return a page with its list of rooms made again.

    Raises:
        ValueError: the page has no place for it.
    """
    begin, end = (f"<!-- made: rooms ({edge}) -->\n" for edge in ("begin", "end"))
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError("the page has no place for the rooms")
    made = "\n".join(map(room, rooms()))
    return page.partition(begin)[0] + begin + made + end + page.partition(end)[2]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.map_page")
    parser.add_argument("--check", action="store_true", help="fail when the page is not current")
    options = parser.parse_args(arguments)
    old = PAGE.read_text(encoding="utf-8")
    new = render(old)
    if not options.check:
        PAGE.write_text(new, encoding="utf-8")
    elif new != old:
        print("docs/map.md is not current: run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
