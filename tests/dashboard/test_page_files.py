"""The files of the dashboard's page, and their union for a page in one file."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

import ctxgc.dashboard
from ctxgc.dashboard import page_file, page_files
from ctxgc.dashboard.page_files import joined_modules
from ctxgc.drawing import style_sheet

PAGE = Path(ctxgc.dashboard.__file__).parent / "page"
MODULES = sorted(file.name for file in PAGE.glob("*.js"))


def _body(name: str) -> str:
    found = page_file(name)
    assert found is not None
    return found.body.decode()


def test_the_page_is_served_with_the_sheet_of_the_reports() -> None:
    assert page_file("") == page_file("index.html")
    assert page_file("theme.css") == (style_sheet().encode(), "text/css; charset=utf-8")
    assert {page_file(name).media_type for name in MODULES} == {"text/javascript; charset=utf-8"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "name", ["../__init__.py", "/etc/hostname", "page/app.js", "none.js", "lib/x.js", "."]
)
def test_nothing_else_is_served(name: str) -> None:
    assert page_file(name) is None


def test_everything_that_the_page_names_is_there() -> None:
    named = re.findall(r'(?:href|src)="([^"#]*\.(?:js|css))"', _body(""))
    imported = [name for file in MODULES for name in re.findall(r'from "\./([^"]+)"', _body(file))]
    assert {name for name in [*named, *imported] if page_file(name) is None} == set()
    assert {*named, *imported, "report.js"} >= set(MODULES)


def test_the_library_for_charts_comes_as_its_package_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert 'version: "3.5' in _body("lib/d3.js")
    monkeypatch.setattr(metadata, "files", _missing)
    page_files._library.cache_clear()
    assert page_file("lib/d3.js") is None
    page_files._library.cache_clear()


def _missing(package: str) -> None:
    raise metadata.PackageNotFoundError(package)


def test_no_module_writes_markup_or_runs_text() -> None:
    ways = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|https?://(?!www\.w3\.org/2000/svg)"
    )
    assert {file: ways.findall(_body(file)) for file in MODULES if ways.search(_body(file))} == {}


def test_joined_modules_need_no_other_file_and_name_nothing_twice() -> None:
    script = joined_modules("report.js")
    assert re.findall(r"^(?:import|export)\b.*", script, re.MULTILINE) == []
    names = re.findall(r"^(?:async )?(?:function|const|class|let) (\w+)", script, re.MULTILINE)
    assert sorted(names) == sorted(set(names))
    assert {"TimeMachine", "Timeline", "startReport"} <= set(names)
