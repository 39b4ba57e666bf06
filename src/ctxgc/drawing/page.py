"""One self-contained page: no network, no script, light and dark.

    page("A report", [Section("Bill", joined([paragraph("..."), figure(bars(...))]))])

A policy in the page's head forbids it to load anything, so that a report can be mailed and opened
anywhere without telling anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctxgc.drawing.markup import Html, joined, tag, text
from ctxgc.drawing.style import style_sheet

_FORBID = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Section(NamedTuple):
    """A part of a page: a heading, what stands below it, and its name in links."""

    title: str
    body: Html
    anchor: str = ""


class Cell(NamedTuple):
    """A cell of a table: a text, a smaller one behind it, and classes.

    `good`, `warn` and `bad` colour it, `left` and `flow` set it left (`flow` breaks lines), `stack`
    puts the smaller text below.
    """

    text: str
    small: str = ""
    style: str = ""


def page(
    title: str,
    sections: Sequence[Section],
    *,
    subtitle: str = "",
    facts: Sequence[tuple[str, str]] = (),
    footer: str = "",
) -> str:
    """Return a whole HTML document.

    Args:
        title: of the page and its first heading.
        sections: what it shows, in order.
        subtitle: a sentence below the heading.
        facts: pairs of value and name that stand large at the top.
        footer: a sentence at the end.
    """
    head = joined(
        [
            tag("h1", text(title)),
            tag("p", text(subtitle), class_="soft"),
            joined([_facts(facts), _links(sections)]),
        ]
    )
    body = joined(
        [
            tag("header", head),
            tag("main", *(_section(one, place) for place, one in enumerate(sections))),
            tag("footer", tag("p", text(footer))),
        ],
        "\n",
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_FORBID}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n<style>{style_sheet()}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def paragraph(words: str, style: str | None = None) -> Html:
    """Return a paragraph."""
    return tag("p", text(words), class_=style)


def listing(items: Iterable[str]) -> Html:
    """Return a list with a dot before each item."""
    return tag("ul", *(tag("li", text(item)) for item in items))


def figure(chart: Html, caption: str = "", heading: str = "") -> Html:
    """Return a chart with its heading above and a caption below."""
    above = [tag("h3", text(heading))] if heading else []
    below = [tag("figcaption", text(caption))] if caption else []
    return tag("figure", *above, chart, *below)


def side_by_side(*parts: Html) -> Html:
    """Return parts beside one another where the window is wide enough."""
    return tag("div", *parts, class_="pair")


def folded(summary: str, body: Html) -> Html:
    """Return something that opens when its summary is clicked."""
    return tag("details", tag("summary", text(summary)), body)


def preformatted(words: str) -> Html:
    """Return text as it is, in a typewriter's letters."""
    return tag("pre", tag("code", text(words)))


def chip(words: str, tone: str) -> Html:
    """Return a small label in a tone."""
    return tag("span", text(words), class_=f"chip tone-{tone}")


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str | Cell]],
    *,
    caption: str = "",
    strong: Iterable[int] = (),
) -> Html:
    """Return a table; the first column stands left, the others right unless their cells say so.

    Args:
        head: the names of the columns.
        rows: strings and cells, both escaped.
        caption: below the table.
        strong: places of the rows to set off.
    """
    marked = set(strong)
    sides = ["left" if _is_left(cell) else None for cell in rows[0]] if rows else [None] * len(head)
    named = zip(head, sides, strict=True)
    names = tag("tr", *(tag("th", text(name), scope="col", class_=side) for name, side in named))
    lines = [
        tag("tr", *map(_cell, row), class_="strong" if place in marked else None)
        for place, row in enumerate(rows)
    ]
    below = [tag("caption", text(caption))] if caption else []
    return tag(
        "div", tag("table", *below, tag("thead", names), tag("tbody", *lines)), class_="wide"
    )


def _is_left(cell: str | Cell) -> bool:
    return isinstance(cell, Cell) and not {"left", "flow"}.isdisjoint(cell.style.split())


def _cell(cell: str | Cell) -> Html:
    if not isinstance(cell, Cell):
        return tag("td", text(cell))
    small = [text(" "), tag("small", text(cell.small))] if cell.small else []
    return tag("td", text(cell.text), *small, class_=cell.style or None)


def _facts(facts: Sequence[tuple[str, str]]) -> Html:
    shown = (tag("div", tag("b", text(a)), tag("span", text(b)), class_="fact") for a, b in facts)
    return tag("div", *shown, class_="facts") if facts else Html("")


def _links(sections: Sequence[Section]) -> Html:
    if len(sections) < 3:
        return Html("")
    links = (
        tag("a", text(one.title), href=f"#{_anchor(one, place)}")
        for place, one in enumerate(sections)
    )
    return tag("nav", *links)


def _section(one: Section, place: int) -> Html:
    return tag("section", tag("h2", text(one.title)), one.body, id=_anchor(one, place))


def _anchor(one: Section, place: int) -> str:
    return one.anchor or f"part-{place + 1}"
