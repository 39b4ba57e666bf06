"""A real browser for tests of pages.

    def test_it_shows_its_title(page_of: PageOf) -> None:
        assert page_of("<h1>Bill</h1>").locator("h1").inner_text() == "Bill"

Whatever a page loads beside itself, and whatever error it logs, fails the test at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from tools import browser as program

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


PATIENCE = 120_000
"""For how many milliseconds the browser may be away."""


class PageOf(Protocol):
    """Opens HTML in the browser."""

    def __call__(self, html: str, *, dark: bool = False, width: int = 1200) -> Page:
        """Return the page, in a window of this width and in this colour scheme."""
        ...


# By module, not by session: while it runs, no other test of the process can start an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give the browser of this machine, or skip."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = program.find()
    if found is None:
        pytest.skip("no browser here: python -m tools.browser installs one")
    with api.sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=found, args=program.arguments(), timeout=PATIENCE
        )
        yield started
        started.close()


@pytest.fixture
def page_of(browser: Browser, tmp_path: Path) -> Iterator[PageOf]:
    """Give a function that opens HTML; at the end nothing else was loaded and nothing went wrong."""
    loaded: list[str] = []
    errors: list[str] = []
    opened: list[str] = []
    pages: list[Page] = []

    def open_page(html: str, *, dark: bool = False, width: int = 1200) -> Page:
        file = tmp_path / f"page_{len(opened)}.html"
        file.write_text(html, encoding="utf-8")
        size = {"width": width, "height": 900}
        page = browser.new_page(color_scheme="dark" if dark else "light", viewport=size)
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: loaded.append(request.url))
        page.on("console", lambda said: errors.append(said.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        opened.append(file.as_uri())
        pages.append(page)
        page.goto(file.as_uri())
        return page

    yield open_page
    for page in pages:
        page.close()
    assert [url for url in loaded if not url.startswith("data:")] == opened
    assert errors == []
