"""The dashboard's page in a real browser, with a server of made-up answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import PATIENCE
from tests.browser.hostile import HOSTILE
from tests.browser.looks import faint_texts, scrolls_sideways
from tests.browser.page_server import ACTIONS, Answers, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class Visit:
    """A browser at a dashboard; whatever it logs as an error is kept."""

    def __init__(self, browser: Browser, url: str, answers: Answers, **window: Any) -> None:
        self.answers, self.url, self.errors = answers, url, list[str]()
        self.page: Page = browser.new_page(**window)
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda said: self.errors.append(said.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog {dialog.message}"))

    def list(self) -> Page:
        self.page.goto(self.url)
        self.page.wait_for_selector(".sessions a")
        return self.page

    def session(self, query: str = "") -> Page:
        self.page.goto(f"{self.url}#/s/stored.made{query}")
        self.page.wait_for_selector(".strip")
        return self.page


@pytest.fixture
def visits(browser: Browser) -> Iterator[Any]:
    """Give a function that opens a dashboard with made-up answers; at the end nothing went wrong."""
    opened: list[tuple[Visit, Any]] = []

    def visit(answers: Answers | None = None, **window: Any) -> Visit:
        answers = answers or Answers()
        server = served(answers)
        made = Visit(browser, server.__enter__(), answers, **window)
        opened.append((made, server))
        return made

    yield visit
    for made, server in opened:
        made.page.close()
        server.__exit__(None, None, None)
    assert [made.errors for made, _ in opened] == [[] for _ in opened]


def _place(page: Page) -> str:
    return page.locator(".request-line b").inner_text()


def test_the_list_shows_all_sessions_with_subagents_below_their_parents(visits: Any) -> None:
    page = visits().list()
    rows = page.locator(".sessions tbody tr")
    assert [row.locator("a").inner_text() for row in rows.all()] == [
        "A made-up session",
        "A subagent",
    ]
    assert rows.nth(1).get_attribute("class") == "depth-1"
    said = rows.nth(0).inner_text()
    assert all(
        words in said
        for words in ("/home/u/shop", "60%", "safe", "$2.25", "$12.50", "$4.13", "cold in")
    )
    assert page.locator(".trend svg rect").count() > 9
    page.get_by_label("Find a session").fill("subagent")
    assert page.locator(".sessions tbody tr").count() == 1


def test_the_slider_shows_the_window_at_each_request(visits: Any) -> None:
    page = visits().session()
    assert _place(page) == "Now"
    slider = page.get_by_role("slider", name="Request")
    slider.focus()
    page.keyboard.press("Home")
    assert _place(page) == "Request 1 of 40"
    assert page.locator(".list .line").count() == 2
    assert "system" in str(page.locator(".strip").get_attribute("aria-label"))
    page.keyboard.press("ArrowRight")
    assert _place(page) == "Request 2 of 40"
    assert str(slider.get_attribute("aria-valuetext")).startswith("request 2, ")
    assert "Came in: 1 segment" in page.locator(".changes").inner_text()


def test_jumps_lead_to_what_happened_and_tell_what_left_and_why(visits: Any) -> None:
    page = visits().session("?at=1")
    page.get_by_role("button", name="The next cache break").click()
    assert _place(page) == "Request 3 of 40"
    assert "miss the text before it changed" in page.locator(".figures").inner_text()
    page.get_by_role("button", name="The next compaction").click()
    assert _place(page) == "Request 21 of 40"
    page.get_by_role("button", name="The next collection").click()
    assert _place(page) == "Request 22 of 40"
    assert "was read again at request 21" in page.locator(".changes table").inner_text()


def test_it_plays_to_the_end(visits: Any) -> None:
    page = visits().session("?at=38")
    page.get_by_role("button", name="Play").click()
    page.wait_for_selector(".request-line b:text-is('Now')")
    assert page.get_by_role("button", name="Play").count() == 1


def test_the_strip_is_coloured_by_source_policy_or_liveness(visits: Any) -> None:
    page = visits().session("?at=40")
    found = {}
    for name in ("Source", "Policy", "Liveness"):
        page.get_by_role("radio", name=name).check()
        found[name] = {
            text.split(":")[0]
            for text in page.locator(".legend").first.locator("li").all_inner_texts()
        }
    assert found["Policy"] == {"partial", "ephemeral", "preservable"}
    assert found["Liveness"] == {"alive", "superseded"}
    assert {"call", "result"} <= found["Source"]


def test_a_segment_shows_its_text_its_chain_and_its_life(visits: Any) -> None:
    page = visits().session("?at=40")
    page.locator(".list .line").nth(3).click()
    page.wait_for_selector(".graph")
    panel = page.locator(".segment")
    assert page.locator(".graph-label").all_text_contents()[0] == "the task"
    assert panel.locator("pre").all_inner_texts() == [
        "[stub of a file]",
        "def total():\n    return 1",
    ]
    assert "Superseded by" in panel.inner_text()
    assert panel.locator("table tbody tr").count() >= 1
    page.locator(".strip").click(position={"x": 60, "y": 5})
    page.wait_for_selector(".strip-hint:has-text('tokens')")
    assert (
        page.locator(".strip-hint")
        .inner_text()
        .startswith(panel.locator(".segment-name").inner_text())
    )


def test_what_has_left_is_found_and_brought_back(visits: Any) -> None:
    visit = visits()
    page = visit.session()
    page.get_by_label("Where").select_option("what has left it")
    page.get_by_label("Find a segment").fill("module_2.py")
    page.locator(".list .line").click()
    page.get_by_role("button", name="Bring it back").click()
    page.wait_for_selector(".toast:has-text('recall is done')")
    assert visit.answers.acted == [("recall", {"handle": "h-7"})]


def test_the_plan_shows_reasons_money_and_what_the_model_would_see(visits: Any) -> None:
    page = visits().session()
    page.get_by_label("Target in tokens").fill("90000")
    page.get_by_role("button", name="Show the plan").click()
    page.wait_for_selector("text=120,000 → 90,000")
    assert (
        "superseded: read again at request 31"
        in page.get_by_role("region", name="The plan").inner_text()
    )
    page.get_by_text("What the model would see: 1 change").click()
    assert page.locator(".diff pre").all_inner_texts() == ["long text", "stub"]


_OUT, _IN = "s-30", "s-59"
"""A segment that has left the window, and one that is in it."""


def _press(page: Page, name: str) -> None:
    """Press the button (or choose the policy) of an action."""
    if name == "policy":
        page.get_by_label("Its policy").select_option("locked")
    elif name == "delete":
        page.get_by_role("button", name="Delete for good").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    else:
        said = {
            "pin": "Pin", "recall": "Bring it back", "stash": "Put away", "collect": "Collect now",
            "undo": "Undo the last collection",
            "checkpoint": "Make a checkpoint", "restore": "Restore it", "export": "Export",
            "continue_from": "Go on from before",
        }  # fmt: skip
        page.get_by_role("button", name=said[name]).click()


def test_every_action_is_sent_and_can_be_undone(visits: Any) -> None:
    visit = visits()
    page = visit.session("?at=40")
    for name in ACTIONS.keys() - {"unpin"}:  # pin's undo
        page.evaluate(
            f"location.hash = '#/s/stored.made?segment={_IN if name == 'stash' else _OUT}'"
        )
        page.wait_for_selector(".graph")
        visit.answers.acted.clear()
        _press(page, name)
        page.wait_for_selector(f".toast:last-child:has-text('{name} is done')")
        ((action, body),) = visit.answers.acted
        assert action == name
        if ACTIONS[name]:
            page.locator(".toast").last.get_by_role("button", name="Undo").click()
            page.wait_for_selector(f".toast:last-child:has-text('{ACTIONS[name]} is done')")
            assert visit.answers.acted[1:] == [(ACTIONS[name], body)]
        while page.locator(".toast").count():
            page.get_by_label("Close this message").first.click()


def test_a_session_that_allows_nothing_has_no_buttons_for_it(visits: Any) -> None:
    answers = Answers()
    answers.actions = []
    page = visits(answers).session("?segment=s-30")
    page.wait_for_selector(".graph")
    names = set(page.get_by_role("button").all_inner_texts())
    assert names.isdisjoint(
        {"Pin", "Bring it back", "Put away", "Delete for good …", "Collect now", "Export"}
    )


def test_it_shows_what_is_new_without_asking_and_keeps_the_focus(visits: Any) -> None:
    visit = visits()
    page = visit.session()
    page.get_by_label("Find a segment").fill("module")
    page.get_by_label("Label of the checkpoint").fill("half a word")
    longer = Answers(requests=44, segments=60)
    visit.answers.timeline = longer.timeline
    visit.answers.announce({"id": "stored.made", "requests": 44, "updated_at": None})
    page.wait_for_selector(".slider[max='44']")
    assert _place(page) == "Now"
    assert page.get_by_label("Find a segment").input_value() == "module"
    assert page.get_by_label("Label of the checkpoint").input_value() == "half a word"
    assert page.evaluate("document.activeElement.placeholder") == "label"


def test_the_keyboard_is_enough(visits: Any) -> None:
    page = visits().list()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    _tab_to(page, "A made-up session")
    page.keyboard.press("Enter")
    page.wait_for_selector(".strip")
    _tab_to(page, "Segments")
    for key in ("End", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector(".graph")
    assert page.locator(".line.active[aria-selected=true]").count() == 1
    _tab_to(page, "Show the plan")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=tokens to write again")


def _tab_to(page: Page, name: str) -> None:
    for _ in range(80):
        page.keyboard.press("Tab")
        said = page.evaluate(
            "(document.activeElement.ariaLabel || document.activeElement.textContent || '')"
        )
        if said == name:
            assert page.evaluate("document.activeElement.matches(':focus-visible')")
            return
    raise AssertionError(f"the keyboard does not reach {name!r}")


def test_hostile_texts_stay_texts_in_every_place(visits: Any) -> None:
    words = "\n".join(HOSTILE)
    assert len(HOSTILE) == 60
    visit = visits(Answers(words=words))
    page = visit.list()
    page.wait_for_selector(".trend svg")
    for text in page.get_by_text("As a table").all():
        text.click()
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main iframe, main script, main object").count() == 0
    assert page.locator("a[href^='javascript']").count() == 0
    listed = [
        " ".join(text.split()) for text in page.locator(".sessions tbody tr").all_inner_texts()
    ]
    assert [row.count(" ".join(words.split())) for row in listed] == [4, 4]
    assert words.split("\n", 1)[0] in page.get_by_role("table").last.inner_text()
    page = visit.session("?at=22&segment=s-30")
    page.wait_for_selector(".graph")
    page.get_by_role("button", name="Show the plan").click()
    page.wait_for_selector("text=tokens to write again")
    page.get_by_role("button", name="Pin").click()
    page.wait_for_selector(".toast")
    for name in ("Each of them", "What the model would see"):
        page.get_by_text(name).first.click()
    page.get_by_role("button", name="Delete for good").click()
    page.wait_for_selector("dialog")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main iframe, main script, main object, dialog img").count() == 0
    assert page.locator("a[href^='javascript']").count() == 0
    for place in (
        ".segment pre",
        "h1",
        ".toast p",
        ".changes table",
        ".diff pre",
        "dialog p",
        ".segment-name",
    ):
        assert HOSTILE[0] in page.locator(place).first.inner_text(), place


def test_a_subagent_without_a_window_says_so_and_leads_to_its_parent(visits: Any) -> None:
    answers = Answers()
    answers.timeline["row"].update(
        kind="recorded", parent="recorded.main", percent=None, limit=None, zone=None
    )
    answers.timeline.update(segments=[], changes=[])
    visit = visits(answers)
    visit.page.goto(f"{visit.url}#/s/stored.made")
    card = visit.page.get_by_role("region", name="Time machine")
    assert "is not worked out, only its requests and their cost" in card.inner_text()
    link = card.get_by_role("link", name="the session that started it")
    assert link.get_attribute("href") == "#/s/recorded.main"
    assert visit.page.locator(".strip").count() == 0
    assert "null" not in visit.page.locator("main").inner_text()


def test_a_session_that_collections_made_dearer_says_so(visits: Any) -> None:
    answers = Answers()
    answers.timeline["row"].update(saved=-1.5, saved_percent=-20.0)
    page = visits(answers).session()
    assert "$1.50\nmore than without collections (20%)" in page.locator(".facts").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_and_readable_in_every_window(visits: Any, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed"
    ).Axe()
    visit = visits(color_scheme=scheme)
    page = visit.list()
    for width in (360, 1400, 3840):
        page.set_viewport_size({"width": width, "height": 900})
        for show in (visit.list, lambda: visit.session("?at=22&segment=s-30")):
            show()
            page.wait_for_selector(".graph, .trend svg")
            assert not scrolls_sideways(page)
            assert faint_texts(page) == []
            found = axe.run(page).response["violations"]
            assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found
                    if one["impact"] in ("serious", "critical")] == []  # fmt: skip


def test_a_step_of_the_slider_looks_at_few_of_many_spans(visits: Any) -> None:
    page = visits(Answers(requests=2_000, segments=1_000)).session("?at=1000")
    visited = page.evaluate("""async () => {
      const { Timeline } = await import('./timeline.js');
      const timeline = new Timeline(await (await fetch('api/sessions/stored.made/timeline')).json());
      const shown = timeline.at(1000).length;
      return [timeline.spans.length, shown, timeline.visited];
    }""")
    assert visited[0] > 1_800
    assert visited[2] < 1.5 * visited[1]
    assert page.locator(".list .line").count() < 40
