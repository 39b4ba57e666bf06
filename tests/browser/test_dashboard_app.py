"""The dashboard as it is served: the real application, real sessions, a real browser."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from ctxgc.dashboard import DashboardApp, DashboardSessions
from ctxgc.gate import LOOPBACK, address, listening
from ctxgc.session import open_store, open_stored, utc_now
from tests.browser.conftest import PATIENCE
from tests.dashboard.places import RECORDED, TOKEN, recorded, worked

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


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


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The store of a session that worked for a while."""
    found = f"json:{tmp_path}/stash.json"
    store = open_store(found)
    worked(store).close()
    store.close()
    return found


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    """A page that shows the dashboard of the store; at the end it logged no error."""
    errors: list[str] = []
    with _served(url) as link:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: errors.append(said.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(link)
        page.wait_for_selector(".sessions a")
        yield page
        page.close()
    assert errors == []


def test_the_main_story_from_the_list_to_what_left_and_back(page: Page) -> None:
    page.locator(".sessions a").first.click()
    page.wait_for_selector(".strip")
    page.get_by_role("button", name="The collection before").click()
    assert "anew and cost" in page.locator(".changes").inner_text()
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_label("Where").select_option("what has left it")
    page.locator(".list .line").first.click()
    page.wait_for_selector(".details:not([aria-busy]) h3")
    page.get_by_role("button", name="Bring it back").click()
    page.locator(".toast", has_text="is back in the window").wait_for()
    assert page.locator(".toast.wrong").all_inner_texts() == []


Press = Callable[["Page"], object]


def _button(name: str) -> Press:
    return lambda page: page.get_by_role("button", name=name, exact=True).click()


def _state(url: str) -> dict[str, Any]:
    """Return what a program that opens the session finds: its window, its pins and its policies."""
    store = open_store(url)
    session = open_stored(store, "s", utc_now())
    whole = [s for s in session.segments() if s.derived_from is None]
    found = {
        "view": session.view(),
        "pinned": {s.segment_id for s in whole if s.pinned},
        "policies": {s.segment_id: s.policy for s in whole},
    }
    store.close()
    return found


def _shown(page: Page, segment: str) -> None:
    page.evaluate(f"location.hash = '#/s/stored.s?segment={segment}'")
    page.wait_for_selector(".details:not([aria-busy]) h3")


def _results(url: str, tier: str) -> list[str]:
    store = open_store(url)
    found = open_stored(store, "s", utc_now()).segments()
    store.close()
    return [s.segment_id for s in found
            if s.part == "tool_result" and s.tier == tier and s.derived_from is None]  # fmt: skip


def _acted(page: Page, press: Press, said: str) -> None:
    """Press something and wait for the message that tells what it did; it is the only one left."""
    while page.locator(".toast").count():
        page.get_by_label("Close this message").first.click()
    press(page)
    page.locator(".toast", has_text=said).wait_for()


def _undone(page: Page, said: str) -> None:
    page.locator(".toast").get_by_role("button", name="Undo", exact=True).click()
    page.locator(".toast", has_text=said).wait_for()


def test_every_action_changes_the_session_and_its_undo_brings_it_back(page: Page, url: str) -> None:
    segment = _results(url, "working")[0]
    _shown(page, segment)
    locked: Press = lambda page: page.get_by_label("Its policy").select_option("locked")  # noqa: E731
    for press, said, undone in (
        (_button("Pin"), "is pinned", "is no longer pinned"),
        (_button("Put away"), "left the window", "is back in the window"),
        (locked, "is locked", "The policy of"),
    ):
        before = _state(url)
        _acted(page, press, said)
        assert _state(url) != before, said
        _undone(page, undone)
        assert _state(url) == before, said
    _acted(page, _button("Pin"), "is pinned")
    before = _state(url)
    _acted(page, _button("Unpin"), "is no longer pinned")
    assert segment not in _state(url)["pinned"]
    _undone(page, "is pinned")
    assert _state(url) == before
    assert page.locator(".toast.wrong").all_inner_texts() == []


def test_what_concerns_the_whole_session_is_undone_too(page: Page, url: str) -> None:
    page.evaluate("location.hash = '#/s/stored.s'")
    page.get_by_label("Label of the checkpoint").fill("as it was")
    _acted(page, _button("Make a checkpoint"), "is made")
    page.get_by_label("Checkpoint", exact=True).select_option("as it was")
    page.get_by_label("Target in tokens").fill("4000")
    before = _state(url)["view"]
    _acted(page, _button("Collect now"), "Collected")
    after = _state(url)["view"]
    assert after != before
    _undone(page, "is undone")
    assert _state(url)["view"] == before
    _undone(page, "The window is what it was")
    assert _state(url)["view"] == after
    page.get_by_label("Checkpoint", exact=True).select_option("as it was")
    _acted(page, _button("Restore it"), "The window is what it was")
    assert _state(url)["view"] == before
    _undone(page, "The window is what it was")
    assert _state(url)["view"] == after
    _acted(page, _button("Undo the last collection"), "is undone")
    assert _state(url)["view"] != after
    _undone(page, "The window is what it was")
    assert _state(url)["view"] == after
    with page.expect_download() as saved:
        _acted(page, _button("Export"), "is exported")
    assert "fix the bug" in saved.value.path().read_text(encoding="utf-8")


def test_what_left_comes_back_and_can_be_put_away_again(page: Page, url: str) -> None:
    segment = _results(url, "stashed")[0]
    _shown(page, segment)
    _acted(page, _button("Bring it back"), "is back in the window")
    assert segment in _results(url, "working")
    _undone(page, "left the window")
    assert segment in _results(url, "stashed")


def test_deleting_for_good_asks_first_and_has_no_undo(page: Page, url: str) -> None:
    segment = _results(url, "working")[0]
    _shown(page, segment)
    _button("Delete for good …")(page)
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Cancel").click()
    assert segment in _results(url, "working")
    _button("Delete for good …")(page)
    _acted(page, lambda page: dialog.get_by_role("button", name="Delete").click(), "for good")
    assert page.locator(".toast").get_by_role("button", name="Undo").count() == 0
    assert segment not in {*_results(url, "working"), *_results(url, "stashed")}


def test_a_recorded_session_goes_on_from_before_its_compaction_and_that_is_undone(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    file = recorded(tmp_path, compact_after=4)
    page.evaluate(f"location.hash = '#/s/recorded.{RECORDED}'")
    page.get_by_role("button", name="The compaction before").click()
    _acted(page, _button("Go on from before the compaction shown"), "A new session")
    assert len(list((tmp_path / "claude").rglob("*.jsonl"))) == 2
    _undone(page, "is deleted; this one was never changed")
    assert list((tmp_path / "claude").rglob("*.jsonl")) == [file]
