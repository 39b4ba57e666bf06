"""One word per idea: what people read uses the words of the table in the concepts, and no others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.requirement_scan import ROOT

INSTEAD = {
    r"nothing refers to|unreferenced|orphaned segment": "unreachable",
    r"\bcold (text|segment|result|message)s?\b": "unreachable, or idle",
    r"\bevict(s|ed|ion)?\b|\boffload": "stash",
    r"\bobsolete\b|\boutdated\b": "superseded",
    r"\bpage[sd]? (in|out)\b": "recall, stash",
    r"\brehydrat": "recall",
}
"""Synonyms, and the word that the table has for their idea."""

ROOMS = ("cli", "demo", "lab", "insight", "mcp", "agents", "session", "guard")
PRINTED = sorted(
    [path for room in ROOMS for path in (ROOT / "src" / "ctxgc" / room).rglob("*.py")]
    + [ROOT / "src" / "ctxgc" / "core" / name for name in ("plan.py", "tombstone.py")]
)
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("[cg]*/*.md")]
)


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what a file can show to people: its strings, or the lines of a page."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from enumerate(source.splitlines(), 1)
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def synonyms_in(path: Path) -> list[str]:
    """Return each synonym in a file, with its line and the word to write instead."""
    return [
        f"{path.name}:{line}: {found[0]!r}, write {word!r}"
        for line, text in _texts(path)
        for pattern, word in INSTEAD.items()
        for found in [re.search(pattern, text, re.IGNORECASE)]
        if found
    ]


@pytest.mark.parametrize("path", [*PRINTED, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_what_people_read_has_one_word_for_each_idea(path: Path) -> None:
    assert synonyms_in(path) == []


def test_a_synonym_is_found_in_code_and_on_pages(tmp_path: Path) -> None:
    code, page = tmp_path / "a.py", tmp_path / "a.md"
    code.write_text('said = "working: nothing refers to it"\n', encoding="utf-8")
    page.write_text("fine\nIt was evicted.\n", encoding="utf-8")
    assert [*synonyms_in(code), *synonyms_in(page)] == [
        "a.py:1: 'nothing refers to', write 'unreachable'",
        "a.md:2: 'evicted', write 'stash'",
    ]
