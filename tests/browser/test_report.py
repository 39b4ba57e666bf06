"""The page of `ctxgc analyze --html` in a real browser."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.dashboard_case import timeline
from ctxgc.cli import main as main_command
from ctxgc.dashboard import report_page, timeline_page
from ctxgc.insight import analyze_transcript
from ctxgc.wire.transcripts import open_transcript
from tests.browser.conftest import PageOf
from tests.browser.hostile import HOSTILE
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


def test_analyze_writes_the_slider_into_its_page(page_of: PageOf, tmp_path: Path) -> None:
    steps = made.conversation(turns=12, lines=40)
    path = made.write_lines(tmp_path / "a.jsonl", made.claude_code(steps, compact_after=8))
    html = tmp_path / "report.html"
    with pytest.raises(SystemExit, match="0"):
        main_command(["analyze", str(path), "--html", str(html), "--quiet"])
    page = page_of(html.read_text(encoding="utf-8"))
    assert page.locator("h2").all_inner_texts()[:3] == [
        "What to do next", "Time machine", "The window over time",
    ]  # fmt: skip
    page.get_by_role("button", name="The compaction before").click()
    assert "compacted" in page.locator(".changes table").inner_text()
    assert faint_texts(page) == []
    assert not scrolls_sideways(page)


def _with_slider(**made: int) -> str:
    return timeline_page("A session", "of the demo", msgspec.json.encode(timeline(**made)))


def test_a_page_in_one_file_has_the_time_machine(page_of: PageOf) -> None:
    page = page_of(_with_slider(requests=40, segments=60))
    page.get_by_role("slider", name="Request").focus()
    page.keyboard.press("Home")
    assert page.locator(".request-line b").inner_text() == "Request 1 of 40"
    page.get_by_role("button", name="The next compaction").click()
    assert page.locator(".request-line b").inner_text() == "Request 21 of 40"
    line = page.locator(".list .line").first
    line.click()
    assert page.locator(".segment-name").inner_text() == line.locator(".line-name").inner_text()
    assert page.locator(".segment tbody tr").count() >= 1
    assert page.get_by_role("button", name="Bring it back").count() == 0


def test_its_texts_stay_texts_and_only_its_own_script_runs(page_of: PageOf) -> None:
    data = timeline(requests=40, segments=60)
    words = "\n".join(HOSTILE)
    for one in [*data["segments"], *data["changes"]]:
        one.update({name: words for name in ("label", "why", "file") if name in one})
    html = timeline_page(words, words, msgspec.json.encode(data))
    page = page_of(html)
    page.get_by_role("slider", name="Request").press("ArrowLeft")
    page.locator(".list .line").first.click()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, iframe, object").count() == 0


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
