"""The drawings of the demo, character by character."""

from __future__ import annotations

import pytest

from ctxgc.demo.lines import bar, chart, shortened, table, text_of, zone


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
    drawn = [text_of(line).rstrip() for line in chart([0, 15, 20, 95, 100, 40], 3, {90: "hard"})]
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
    rows = [("reason", "tokens"), ("a", "7"), ("longer", "1,000")]
    assert [text_of(line) for line in table(rows, indent="")] == [
        "reason  tokens",
        "a            7",
        "longer   1,000",
    ]


def test_a_long_text_is_cut_and_stays_on_one_line() -> None:
    assert shortened("one\n two", 20) == "one two"
    assert shortened("abcdefghij", 8) == "abcde..."
