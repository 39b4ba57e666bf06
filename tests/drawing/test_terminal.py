"""The drawings of a terminal, character by character."""

from __future__ import annotations

import pytest

from ctxgc.drawing import (
    STYLES,
    bar,
    chart,
    shortened,
    terminal_bars,
    terminal_table,
    text_of,
    zone,
)
from ctxgc.drawing.terminal import sparkline


@pytest.mark.parametrize(
    ("percent", "name"),
    [
        (0, "safe"),
        (69.9, "safe"),
        (70, "warning"),
        (85, "danger"),
        (95, "critical"),
        (120, "critical"),
    ],
)
def test_a_percentage_has_its_zone(percent: float, name: str) -> None:
    assert zone(percent) == name


def test_a_bar_is_filled_to_its_percentage_and_never_beyond_its_width() -> None:
    assert text_of(bar(50, 8)) == "████░░░░"
    assert text_of(bar(0, 4)) == "░░░░"
    assert text_of(bar(250, 4)) == "████"


def test_a_chart_shows_the_highest_value_of_each_column() -> None:
    drawn = [text_of(line).rstrip() for line in chart([0, 15, 20, 95, 100, 40], 14, {90: "hard"})]
    assert drawn == [
        "  90% ·▄█ hard",
        "  80%  ██",
        "  70%  ██",
        "  60%  ██",
        "  50%  ██",
        "  40%  ██",
        "  30%  ██",
        "  20%  ██",
        "  10% ▄██",
        "   0% ███",
    ]


def test_a_chart_of_few_values_has_as_many_columns() -> None:
    assert text_of(chart([100], 80, {})[0]) == "  90% █"


def test_a_table_aligns_numbers_to_the_right() -> None:
    rows = [("a", "7"), ("longer", "1,000")]
    drawn = terminal_table(("reason", "tokens"), rows, 80, indent="")
    assert [text_of(line) for line in drawn] == [
        "reason  tokens",
        "a            7",
        "longer   1,000",
    ]


def test_a_long_text_is_cut_and_stays_on_one_line() -> None:
    assert shortened("one\n two", 20) == "one two"
    assert shortened("abcdefghij", 8) == "abcdefg…"
    assert shortened("abcdefghij", 8, keep="end") == "…defghij"
    assert shortened("abcdefghij", 8, keep="ends") == "abc…ghij"


def test_bars_are_drawn_to_an_eighth_and_what_is_not_nothing_is_seen() -> None:
    rows = [("Read", 8.0, "8k"), ("Bash", 4.25, "4k"), ("ls", 0.001, "1"), ("none", 0.0, "0")]
    assert [text_of(line) for line in terminal_bars(rows, 20)] == [
        "  Read  ████████  8k",
        "  Bash  ████▎     4k",
        "  ls    ▏          1",
        "  none             0",
    ]


def test_no_rows_draw_no_bars() -> None:
    assert terminal_bars([], 8) == []


def test_a_sparkline_shows_the_highest_of_each_share() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([0, 7, 0, 0], 2) == "█▁"
    assert sparkline([5, 5], 9) == "██"
    assert sparkline([], 9) == ""


def test_a_chart_of_nothing_is_empty() -> None:
    assert chart([], 10, {}) == []


def test_every_zone_has_a_style() -> None:
    assert {zone(percent) for percent in range(101)} <= set(STYLES)
