"""The lab's report, as a real browser shows it."""

from __future__ import annotations

import pytest

from ctxgc.lab import html_report
from tests.browser.conftest import PageOf
from tests.browser.looks import (
    clipped_texts,
    faint_texts,
    narrower_charts,
    scrolls_sideways,
    small_texts,
)
from tests.lab.reports import ROWS, made_report


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1400, 400])
def test_the_report_is_readable_in_any_window_and_scheme(
    page_of: PageOf, dark: bool, width: int
) -> None:
    shown = page_of(html_report(made_report(timing=True)), dark=dark, width=width)
    assert shown.locator("svg.chart:visible").count() == 5
    assert narrower_charts(shown) == []
    assert small_texts(shown) == []
    assert not scrolls_sideways(shown)
    assert clipped_texts(shown) == []
    assert faint_texts(shown) == []


def test_the_summary_fits_a_laptop_without_scrolling(page_of: PageOf) -> None:
    shown = page_of(html_report(made_report()), width=1200)
    hidden = "box => box.scrollWidth - box.clientWidth"
    assert shown.locator("#summary .wide").evaluate(hidden) == 0


def test_a_point_says_its_figures_when_the_pointer_rests_on_it(page_of: PageOf) -> None:
    shown = page_of(html_report(made_report()))
    dots = shown.locator("#front figure:first-of-type .broad circle title").all_text_contents()
    assert dots[1].startswith("ctxgc (ours 1.2.3): bill 0.685 [0.6")
    assert len(dots) == len(ROWS) - 1  # one is too dear for the frame


def test_all_results_of_a_policy_unfold(page_of: PageOf) -> None:
    shown = page_of(html_report(made_report()))
    folded = shown.locator("#runs details").nth(1)
    assert not folded.get_by_text("run-3").is_visible()
    folded.locator("summary").click()
    assert folded.get_by_text("run-3").is_visible()


def test_hostile_names_run_nothing(page_of: PageOf) -> None:
    shown = page_of(html_report(made_report(prefix="<script>document.title='taken'</script>")))
    assert shown.title() == "ctxgc lab"
    assert shown.locator("script").count() == 0
