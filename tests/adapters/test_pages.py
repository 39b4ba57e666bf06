"""The examples on the pages about adapters run, each where its framework is installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ctxgc.adapters import FRAMEWORKS
from tests.markdown import read

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs" / "adapters"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")


@pytest.mark.filterwarnings("default")  # the frameworks warn of their own affairs
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_example_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = next(each for each in FRAMEWORKS if each.name == path.stem)
    if framework.installed() is None:
        pytest.skip(f"python -m tools.adapters run {framework.name}")
    monkeypatch.chdir(tmp_path)
    module = ModuleType("docs_example")
    monkeypatch.setitem(sys.modules, "docs_example", module)
    for block in read(path).blocks:
        if block.language == "python":
            code = "\n" * (block.line - 1) + block.text
            exec(compile(code, str(path), "exec"), vars(module))  # our own examples


def test_every_framework_has_an_adapter_a_test_and_a_page() -> None:
    tests = {path.stem for path in Path(__file__).parent.glob("test_*.py")}
    assert {path.stem for path in PAGES} == {each.name for each in FRAMEWORKS}
    assert {f"test_{each.name.replace('-', '_')}" for each in FRAMEWORKS} <= tests
    assert all(importlib.util.find_spec(each.adapter) for each in FRAMEWORKS)
