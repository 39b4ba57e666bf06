"""The charts and the page shell, as a real browser shows them."""

from __future__ import annotations

from functools import partial

import pytest

from ctxgc.drawing import (
    Axis,
    Bar,
    Dot,
    Section,
    Series,
    Slice,
    Strip,
    bars,
    donut,
    figure,
    lines,
    page,
    scatter,
    side_by_side,
    strips,
    table,
)
from tests.browser.conftest import PageOf
from tests.browser.looks import (
    clipped_texts,
    faint_texts,
    narrower_charts,
    scrolls_sideways,
    small_texts,
)

NAMES = ["never", "ctxgc", "ctxgc-careful", "langchain ClearToolUsesEdit", "drop oldest half"]


def _gallery() -> str:
    bill, clean = Axis("bill, share of never pruning"), Axis("clean steps, %")
    values = list(
        zip(NAMES, (1.0, 0.66, 0.7, 0.98, 2.16), (100, 99.4, 99.5, 98.2, 74.5), strict=True)
    )
    dots = [Dot(name, x, y, "teal", x_span=(x - 0.03, x + 0.03)) for name, x, y in values]
    drawn = [
        figure(partial(scatter, dots, title="all", x=bill, y=clean, with_front=True, groups=[("a", "teal")])),
        figure(partial(bars, [Bar(name, x, span=(x - 0.1, x + 0.1)) for name, x, _ in values], title="bars")),
        figure(partial(strips, [Strip(n, [(x, n), (y / 90, n)]) for n, x, y in values], title="s")),
        figure(partial(lines, [Series("p50", [(0, 1), (9, 4)]), Series("p99", [(0, 2), (9, 9)])], title="l",
                     marks={"goal": 6.0}, dots=True)),
        figure(partial(donut, [Slice("Read", 5), Slice("Bash", 3, "red")], title="d", centre="8k")),
    ]  # fmt: skip
    rows = [[name, f"{x:.2f}", f"{y}"] for name, x, y in values]
    sections = [
        Section("Charts", side_by_side(*drawn)),
        Section("Table", table(["policy", "bill", "clean"], rows, strong=[1])),
        Section("Wide", table([f"column {n}" for n in range(30)], [["x" * 20] * 30])),
    ]
    return page("A gallery", sections, facts=[("0.66", "bill")], footer="made for a test")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1400, 900, 700, 400])
def test_everything_is_seen_in_any_window_and_scheme(
    page_of: PageOf, dark: bool, width: int
) -> None:
    shown = page_of(_gallery(), dark=dark, width=width)
    assert shown.locator("svg.chart:visible").count() == 5
    assert narrower_charts(shown) == []
    assert small_texts(shown) == []
    assert not scrolls_sideways(shown)
    assert clipped_texts(shown) == []
    assert faint_texts(shown) == []


def test_the_schemes_differ(page_of: PageOf) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = (page_of(_gallery(), dark=dark).evaluate(ground) for dark in (False, True))
    assert (light, dark) == ("rgb(246, 247, 249)", "rgb(17, 21, 28)")


def test_a_script_in_a_text_does_not_run(page_of: PageOf) -> None:
    hostile = "</title></style><script>document.title = 'taken'</script>"
    shown = page_of(
        page(hostile, [Section(hostile, figure(partial(bars, [Bar(hostile, 1)], title=hostile)))])
    )
    assert shown.title() == hostile
    assert shown.locator("script").count() == 0


def test_a_link_leads_to_its_section(page_of: PageOf) -> None:
    shown = page_of(_gallery(), width=390)
    shown.get_by_role("link", name="Wide").click()
    assert shown.url.endswith("#part-3")


def test_a_wide_table_scrolls_by_keyboard_too_and_its_edges_say_so(page_of: PageOf) -> None:
    wide = page_of(_gallery(), width=400).locator(".wide").last
    assert wide.evaluate("box => getComputedStyle(box).backgroundAttachment") == (
        "local, local, scroll, scroll"
    )
    wide.press("ArrowRight")
    # Scrolling takes a while, and the page's policy forbids the script of `wait_for_function`.
    for _ in range(100):
        if wide.evaluate("box => box.scrollLeft"):
            break
        wide.page.wait_for_timeout(50)
    assert wide.evaluate("box => box.scrollLeft") > 0
