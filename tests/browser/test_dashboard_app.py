"""The dashboard as it is served: the real application, a real session, a real browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from ctxgc.dashboard import DashboardApp, DashboardSessions
from ctxgc.gate import LOOPBACK, address, listening
from ctxgc.session import open_store
from tests.browser.conftest import PATIENCE
from tests.dashboard.places import TOKEN, worked

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@contextmanager
def _served(url: str) -> Iterator[str]:
    listener = listening("127.0.0.1", 0)
    app = DashboardApp(
        DashboardSessions(open_store(url)), tokens={"me": TOKEN},
        port=listener.getsockname()[1], hosts=LOOPBACK,
    )  # fmt: skip
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    yield f"{address(listener, '127.0.0.1')}/dashboard/?token={TOKEN.replace(' ', '%20')}"
    server.should_exit = True
    thread.join(60)


def test_the_main_story_from_the_list_to_what_left_and_back(
    browser: Browser, tmp_path: Path
) -> None:
    url = f"json:{tmp_path}/stash.json"
    store = open_store(url)
    worked(store).close()
    store.close()
    errors: list[str] = []
    with _served(url) as link:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: errors.append(said.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(link)
        page.locator(".sessions a").first.click()
        page.wait_for_selector(".strip")
        page.get_by_role("button", name="The collection before").click()
        assert "anew and cost" in page.locator(".changes").inner_text()
        page.get_by_role("button", name="Show the plan").click()
        page.get_by_label("Where").select_option("what has left it")
        page.locator(".list .line").first.click()
        page.wait_for_selector(".details:not([aria-busy]) h3")
        page.get_by_role("button", name="Bring it back").click()
        page.locator(".toast").last.wait_for()
        page.locator(".toast").last.get_by_role("button", name="Undo").click()
        page.locator(".toast").wait_for()
        page.get_by_label("Label of the checkpoint").fill("as it is")
        page.get_by_role("button", name="Make a checkpoint").click()
        made = page.get_by_label("Checkpoint", exact=True).locator("option", has_text="as it is")
        made.wait_for(state="attached")
        assert page.locator(".toast.wrong").all_inner_texts() == []
        page.close()
    assert errors == []
