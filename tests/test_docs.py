"""The docs are true: their examples run, their links lead somewhere, their commands exist."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

import ctxgc.cli
from ctxgc.testing import make_session
from tests.markdown import Block, Page, read
from tests.message_walk import walks
from tools import map_page
from tools.requirement_scan import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SHELLS = {"console", "sh", "bash", "shell"}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(params=PAGES, ids=_name)
def page(request: pytest.FixtureRequest) -> Page:
    return read(request.param)


def test_the_python_examples_run(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All blocks of a page are one script, run in an empty directory."""
    if page.path.parent.name == "adapters":
        pytest.skip(
            "needs its framework: tests/adapters/test_pages.py runs it where that is installed"
        )
    monkeypatch.chdir(tmp_path)
    module = ModuleType("docs_example")
    monkeypatch.setitem(sys.modules, "docs_example", module)
    for block in page.blocks:
        if block.language == "python" and block.skip is None:
            exec(_code(block, page.path), vars(module))  # our own examples


def _code(block: Block, path: Path) -> object:
    """Compile a block so that a traceback shows the line of the page."""
    return compile("\n" * (block.line - 1) + block.text, str(path), "exec")


def test_the_python_examples_import_from_faces(page: Page) -> None:
    code = "\n".join(block.text for block in page.blocks if block.language == "python")
    modules = re.findall(r"^from (ctxgc\.\w+\.[\w.]+) import", code, re.MULTILINE)
    adapters = {module for module in modules if module.startswith("ctxgc.adapters.")}
    assert set(modules) - adapters - {"ctxgc.wire.transcripts"} == set()


def test_a_block_that_is_not_executed_says_why(page: Page) -> None:
    assert [block.line for block in page.blocks if block.skip == ""] == []


def test_relative_links_lead_somewhere(page: Page) -> None:
    broken = [f"{line}: {link}" for line, link in page.links() if not _leads(page, link)]
    assert broken == []


def _leads(page: Page, link: str) -> bool:
    if re.match(r"[a-z][a-z+.-]*:", link):
        return True
    file, _, anchor = link.partition("#")
    target = (page.path.parent / file).resolve() if file else page.path
    if not anchor or target.suffix != ".md":
        return target.exists()
    return target.exists() and anchor in read(target).anchors()


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


def test_the_report_in_the_readme_is_what_analyze_prints(tmp_path: Path) -> None:
    """Its figures are those of another session; its headings and its labels are the same."""
    file = tmp_path / "session.json"
    file.write_text(json.dumps(make_session(seed=1).messages), encoding="utf-8")
    printed = CliRunner().invoke(ctxgc.cli.main, ["analyze", str(file)]).output
    blocks = [b.text for b in read(ROOT / "README.md").blocks if "── Garbage" in b.text]
    labels = re.findall(r"^(── [\w ]+ ─|  [a-z][a-z ]+  )", "\n".join(blocks), re.MULTILINE)
    assert len(labels) == 9
    assert [label for label in labels if label.rstrip() not in printed] == []


RECORDED = ROOT.parent / "shared" / "data" / "claude_code_raw"
_OF_POLICY = re.compile(r"^  with collections|% saved by|^     tokens \(|Pruning takes it from")


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded sessions are not on this machine")
def test_the_figures_in_the_readme_are_those_of_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """But for those that change with the policy, which the release writes anew."""
    monkeypatch.setenv("COLUMNS", "100")
    session = next(RECORDED.glob("5f8cbb78*"))
    printed = CliRunner().invoke(ctxgc.cli.main, ["analyze", str(session)]).output.splitlines()
    block = next(b.text for b in read(ROOT / "README.md").blocks if "── Garbage" in b.text)
    shown = [line for line in block.splitlines() if not _OF_POLICY.search(line)]
    assert [line for line in shown if line not in printed] == []


def test_a_link_that_names_code_leads_to_its_definition(page: Page) -> None:
    wrong = [f"{name}: {file}" for name, file in _code_links(page.prose, page.path.parent)
             if file.exists() and name not in map_page.defined_in(file)]  # fmt: skip
    assert wrong == []


def _code_links(lines: Iterable[str], folder: Path) -> list[tuple[str, Path]]:
    """Return the name and the file of each link such as [`Heap.add`](heap.py)."""
    found = re.findall(r"\[`([\w.]+)`\]\(([^)]+\.py)\)", "\n".join(lines))
    return [(name, (folder / file).resolve()) for name, file in found if not name.endswith(".py")]


def test_the_map_is_current() -> None:
    assert map_page.main(["--check"]) == 0


def test_the_walk_on_the_map_is_the_way_that_a_message_goes() -> None:
    """Each function of a list is called by that call, for the first time after the one before it."""
    page = read(ROOT / "docs" / "map.md")
    lists = dict(_sections(page.prose))
    for call, walk in walks().items():
        named = [(file, name) for name, file in _code_links(lists[call], page.path.parent)]
        assert named == [step for step in walk if step in named], call


def _sections(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each heading with the lines up to the next one."""
    starts = [number for number, line in enumerate(lines) if line.startswith("#")]
    for start, end in itertools.pairwise([*starts, len(lines)]):
        yield lines[start].lstrip("# "), list(lines[start + 1 : end])


def test_the_make_targets_in_the_shell_examples_exist(page: Page) -> None:
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", rules, re.MULTILINE))
    named = {word for words in _commands(page, "make") for word in words if "=" not in word}
    assert {word for word in named if not word.startswith("-")} - targets == set()


def test_the_ctxgc_commands_in_the_shell_examples_exist(page: Page) -> None:
    assert [words for words in _commands(page, "ctxgc") if not _is_command(words)] == []


def _commands(page: Page, program: str) -> Iterator[list[str]]:
    """Yield the words after the program's name on each line that runs it."""
    for block in page.blocks:
        if block.language in SHELLS:
            for line in block.text.splitlines():
                words = line.removeprefix("$ ").partition("#")[0].split()
                if words[:1] == [program]:
                    yield words[1:]


def _is_command(words: list[str]) -> bool:
    """Return whether the words up to the first option name a command of the command line."""
    command = importlib.import_module("ctxgc.cli").main
    for word in words:
        names = command.list_commands(None) if hasattr(command, "list_commands") else None
        if names is None or word.startswith("-"):
            return True
        if word not in names:
            return False
        command = command.get_command(None, word)
    return True


SAMPLE = """\
# One heading
[a](b.md) `[no](link.md)` [c](https://example.org/x "title")
```python
x = 1
```
<!-- not executed: needs a key -->
```python
y = [z](w)
```
<!-- not executed: -->
```console
$ make test JOBS=2  # comment
output
```
"""


def test_the_reader_finds_blocks_links_and_anchors(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(SAMPLE, encoding="utf-8")
    found = read(path)
    assert found.blocks == (
        Block("python", "x = 1", 4),
        Block("python", "y = [z](w)", 8, "needs a key"),
        Block("console", "$ make test JOBS=2  # comment\noutput", 12, ""),
    )
    assert found.links() == [(2, "b.md"), (2, "https://example.org/x")]
    assert found.anchors() == {"one-heading"}
    assert list(_commands(found, "make")) == [["test", "JOBS=2"]]
    assert not _leads(found, "b.md")
    assert not _leads(found, "#two")
    assert _leads(found, "#one-heading")


def test_a_block_that_never_closes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("```python\nx = 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="never closed"):
        read(path)
