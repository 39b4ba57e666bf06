"""A page stands alone: nothing to load, nothing to run, nothing unescaped."""

from __future__ import annotations

import re
from functools import partial
from html.parser import HTMLParser

from ctxgc.drawing import (
    Bar,
    Cell,
    Section,
    bars,
    figure,
    folded,
    joined,
    listing,
    page,
    paragraph,
    preformatted,
    side_by_side,
    table,
)
from ctxgc.drawing.html_page import chip

HOSTILE = "</style></title><script>alert(1)</script><img src=x onerror=alert(1)>\x00\ud800"


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loads += [v or "" for k, v in attrs if k in ("src", "href", "srcset", "data")]
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _page(words: str) -> str:
    drawn = partial(bars, [Bar(words, 1.0, hint=words)], title=words)
    body = joined(
        [
            paragraph(words),
            listing([words]),
            side_by_side(figure(drawn, words, words), folded(words, preformatted(words))),
            chip(words, "red"),
            table([words, words], [[words, Cell(words, words, "good")]], caption=words, strong=[0]),
        ]
    )
    sections = [Section(words, body) for _ in range(3)]
    return page(words, sections, subtitle=words, facts=[(words, words)], footer=words)


def test_a_page_is_balanced_and_loads_nothing() -> None:
    reader = _Reader()
    reader.feed(_page("plain"))
    assert reader.open == []
    assert reader.loads == ["data:,", "#part-1", "#part-2", "#part-3"]


def test_hostile_text_adds_no_element_and_can_be_written_to_a_file() -> None:
    plain, hostile = _Reader(), _Reader()
    plain.feed(_page("plain"))
    hostile.feed(_page(HOSTILE).encode("utf-8").decode("utf-8"))
    assert hostile.tags == plain.tags
    assert "script" not in hostile.tags


def test_a_page_forbids_everything_but_its_own_style() -> None:
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert f'content="{policy}"' in _page("plain")


def test_both_colour_schemes_name_the_same_colours() -> None:
    sheet = _page("plain")
    light, dark = re.findall(r":root\{([^}]*)\}", sheet)
    assert set(re.findall(r"--(\w+):", light)) == set(re.findall(r"--(\w+):", dark))
    assert set(re.findall(r"var\(--(\w+)\)", sheet)) - {"tone"} <= set(
        re.findall(r"--(\w+):", dark)
    )


def test_few_sections_need_no_links() -> None:
    assert "<nav>" not in page("t", [Section("a", paragraph("x"))])


def test_a_strong_row_and_a_cell_carry_their_classes() -> None:
    drawn = table(["n", "v"], [["a", "1"], ["b", Cell("2", "±1", "bad")]], strong=[1])
    assert "<tr><td>a</td><td>1</td></tr>" in drawn
    assert '<tr class="strong"><td>b</td><td class="bad">2 <small>±1</small></td></tr>' in drawn
