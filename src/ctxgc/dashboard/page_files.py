"""The files of the dashboard's page: our own, the sheet that reports have too, and the library for charts.

    page_file("")          # PageFile(body=b"<!DOCTYPE html>...", media_type="text/html; charset=utf-8")
    page_file("lib/d3.js") # as the package XStatic-D3 brings it, or None where that is not installed

The page is plain ES modules. `joined_modules` puts them into one script, for a report in a file of its own.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from ctxgc.drawing import style_sheet

_FOLDER = Path(__file__).parent / "page"
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_LIBRARIES = {"lib/d3.js": ("XStatic-D3", "d3.js")}
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(?P<name>[\w.]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)


class PageFile(NamedTuple):
    """A file to serve: its bytes and what kind of text they are."""

    body: bytes
    media_type: str


def page_file(name: str) -> PageFile | None:
    """Return a file of the page by its path below the dashboard, or None if there is none of the name."""
    name = name or "index.html"
    body = _body(name)
    return None if body is None else PageFile(body, f"{_TYPES[Path(name).suffix]}; charset=utf-8")


def joined_modules(entry: str) -> str:
    """Return a module and all that it imports as one script, each after those that it needs."""
    return "".join(_module(name) for name in _in_order(entry, []))


def own_sheet() -> str:
    """Return the style sheet of the page, without what it shares with the reports."""
    return _text("style.css")


def _body(name: str) -> bytes | None:
    if name == "theme.css":
        return style_sheet().encode()
    if name in _LIBRARIES:
        return _library(*_LIBRARIES[name])
    return _text(name).encode() if name in _own_names() else None


@cache
def _own_names() -> frozenset[str]:
    return frozenset(file.name for file in _FOLDER.iterdir() if file.suffix in _TYPES)


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def _library(package: str, file: str) -> bytes | None:
    """Return a file of an installed package without importing it: the old ones need what is no more."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return None
    found = next((each for each in files if each.name == file), None)
    return None if found is None else Path(str(found.locate())).read_bytes()


def _in_order(name: str, known: list[str]) -> list[str]:
    for needed in _IMPORT.findall(_text(name)):
        if needed not in known:
            _in_order(needed, known)
    if name not in known:
        known.append(name)
    return known


def _module(name: str) -> str:
    return _EXPORT.sub("", _IMPORT.sub("", _text(name)))
