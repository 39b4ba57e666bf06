"""The page of `ctxgc analyze --html` in a real browser."""

from __future__ import annotations

from pathlib import Path

from ctxgc.cli.analyze_page import report_page
from ctxgc.insight import analyze_transcript
from ctxgc.wire.transcripts import open_transcript
from tests.browser.conftest import PageOf
from tests.browser.looks import (
    clipped_texts,
    faint_texts,
    narrower_charts,
    scrolls_sideways,
    small_texts,
)
from tests.wire.transcripts import made


def _page(tmp_path: Path) -> str:
    lines = made.claude_code(
        made.conversation(turns=12, lines=40), compact_after=8, cache_break_at=22
    )
    path = made.write_lines(tmp_path / "a.jsonl", lines, end=b"{half")
    return report_page(analyze_transcript(open_transcript(path), context_limit=12_000))


def test_the_page_shows_every_part(page_of: PageOf, tmp_path: Path) -> None:
    page = page_of(_page(tmp_path))
    assert page.locator("h1").inner_text() == "Fixing prices"
    assert page.locator("h2").all_inner_texts() == [
        "What to do next", "The window over time", "Tokens by source", "Tokens by tool",
        "Tokens by file", "Turns", "Garbage", "Bill", "Prompt cache", "Damaged lines",
    ]  # fmt: skip
    assert page.locator("svg:visible").count() >= 8


def test_it_is_whole_and_readable_in_every_window(page_of: PageOf, tmp_path: Path) -> None:
    html = _page(tmp_path)
    for width in (1400, 400):
        for dark in (False, True):
            page = page_of(html, dark=dark, width=width)
            assert not scrolls_sideways(page)
            assert clipped_texts(page) == []
            assert narrower_charts(page) == []
            assert small_texts(page) == []
            assert faint_texts(page) == []
