"""The page of a report shows every figure once, and no text becomes markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from ctxgc.lab import html_report
from tests.lab.reports import made_report, result

HOSTILE = "<script>alert('&')</script>\x00"
SECTIONS = [
    "Summary",
    "The half that fits, and the half that judges",
    "What each policy costs and keeps",
    "Run by run",
    "What was missing when it was used",
    "Compared with the oracles and the best of the others",
    "Soundness",
    "Versions and settings",
    "What this measures, and what it does not",
    "All results",
]


class _Cells(HTMLParser):
    """Collects headings and the rows of tables."""

    def __init__(self) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.rows: list[list[str]] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            continue

    def handle_data(self, data: str) -> None:
        if "td" in self._inside or "th" in self._inside:
            self.rows[-1][-1] += data
        elif self._inside[-1:] == ["h2"]:
            self.headings.append(data)


def _read(text: str) -> _Cells:
    reader = _Cells()
    reader.feed(text)
    return reader


def test_the_page_has_its_sections_in_order() -> None:
    assert _read(html_report(made_report())).headings == SECTIONS


def test_the_same_report_gives_the_same_page() -> None:
    assert html_report(made_report(timing=True)) == html_report(made_report(timing=True))


def test_the_summary_shows_bill_bits_intervals_and_worst_run_of_each_policy() -> None:
    rows = _read(html_report(made_report())).rows
    bill, worst = "0.685 0.68 to 0.69", "0.71"
    assert rows[2][:6] == ["ctxgc", bill, "0.843", "1.00", worst, "95.0"]
    assert ["ctxgc", worst, "run-5", "0%", "6"] in rows


def test_the_gap_to_the_oracle_shows_ratios_and_the_share_of_its_saving() -> None:
    # it saves 1 - 0.465 = 53.5% of the bill and misses nothing, and ctxgc saves 31.5%
    (row,) = [
        row
        for row in _read(html_report(made_report())).rows
        if row[1:2] == ["oracle-line (oracle)"]
    ]
    assert (row[0], row[2][:5], row[3:]) == ("ctxgc", "1.473", ["-", "59%"])


def test_decision_times_are_shown_only_when_they_were_taken() -> None:
    assert "Decision time" not in html_report(made_report())
    timed = _read(html_report(made_report(timing=True)))
    assert timed.headings.count("Decision time") == 1
    assert ["ctxgc", "more", "6", "4.00", "4.00", "4.00"] in timed.rows


def test_an_invalid_history_and_its_rule_are_named() -> None:
    rows = _read(html_report(made_report(refused=2, rules={"pair": 2}))).rows
    assert ["somebody", "12 pair x 12", "0", "12", "12", "0", "-", "100.0%"] in rows


def test_wrong_requests_stand_in_the_summary_and_take_a_policy_off_the_front() -> None:
    sound, wrong = (html_report(made_report(over=count)) for count in (0, 1))
    assert [row[-1] for row in _read(sound).rows[1:6]] == ["0"] * 5
    assert [row[-1] for row in _read(wrong).rows[1:6]] == ["6"] * 5
    assert [shown.count('class="ring') for shown in (sound, wrong)] == [
        2 * 3,
        8 * 3,
    ]  # each chart is drawn at three widths


def test_a_policy_that_failed_everywhere_is_said_to_have_failed() -> None:
    shown = html_report(made_report(error="ValueError: no"))
    assert ["ctxgc", "failed", *[""] * 9] in _read(shown).rows
    assert "ctxgc: 6 runs. ValueError: no" in shown


def test_policies_too_dear_for_the_frame_are_named_below_it() -> None:
    assert "Too expensive for this chart: mask-keep-10 (bill 1.65, 85.0%)" in html_report(
        made_report()
    )


def test_no_text_becomes_markup() -> None:
    shown = html_report(made_report(prefix=HOSTILE, run=HOSTILE, rules={HOSTILE: 1}))
    assert "<script" not in shown
    assert "\x00" not in shown
    assert len(re.findall("&lt;script&gt;", shown)) > 50


def test_a_result_shows_its_error_in_place_of_figures() -> None:
    whole = made_report()
    failed = result("ctxgc", 7, 1, 0, error="RuntimeError: x")
    whole.results.append(failed)
    assert ["run-7", "16,000", "30", *[""] * 5, "RuntimeError: x"] in _read(html_report(whole)).rows
