"""One self-contained page: no network, light and dark, and no script but one that is given with it.

    page("A report", [Section("Bill", joined([paragraph("..."), figure(partial(bars, ...))]))])

A content security policy forbids the page to load anything, so that a report can be mailed and opened
anywhere without contacting any host.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from ctxgc.drawing.svg import TONES, Html, joined, tag, text

# -- JSON


def readable_json(found: object) -> bytes:
    """Return a value as JSON with one line per value; equal values give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"


# -- The style sheet


_LIGHT = {
    "paper": "#f6f7f9", "card": "#ffffff", "ink": "#1b2330", "soft": "#5a6676", "rule": "#dde2ea",
    "stripe": "#f2f5f9", "strong": "#e7f0fe", "accent": "#1f63d6", "blue": "#2f8fc9",
    "shade": "#aab6c6", "teal": "#0f8b84", "green": "#2f8f46", "amber": "#b97a00",
    "orange": "#c9591c", "red": "#c8323f", "violet": "#7d4fc4", "grey": "#77828f",
}  # fmt: skip
_DARK = {
    "paper": "#11151c", "card": "#191f29", "ink": "#e4e9f1", "soft": "#9aa7b8", "rule": "#2d3644",
    "stripe": "#1e2530", "strong": "#1d3050", "accent": "#6aa6ff", "blue": "#62bdf0",
    "shade": "#47566b", "teal": "#45c8bf", "green": "#63c97c", "amber": "#e6b450",
    "orange": "#f0935c", "red": "#f27a84", "violet": "#b493f5", "grey": "#94a1b1",
}  # fmt: skip

_SHEET = """
*{box-sizing:border-box}
html{scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);line-height:1.5;
 font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main,header,footer{max-width:1120px;margin:0 auto;padding:0 clamp(10px,3vw,20px)}
header{padding-top:36px}
h1{font-size:27px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:19px;margin:0 0 4px}
h3{font-size:15px;margin:18px 0 4px}
p{margin:6px 0 10px;overflow-wrap:anywhere}
.soft,.note,footer{color:var(--soft)}
.note{font-size:14px}
a{color:var(--accent)}
code,.mono{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
nav{display:flex;flex-wrap:wrap;gap:6px 16px;margin:16px 0 4px;font-size:14px}
section{background:var(--card);border:1px solid var(--rule);border-radius:10px;
 padding:20px clamp(12px,3vw,22px);margin:18px 0}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:18px 0 0}
.fact{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:11px 14px}
.fact b{display:block;font-size:21px;line-height:1.25;font-variant-numeric:tabular-nums;
 overflow-wrap:anywhere}
.fact span{color:var(--soft);font-size:13px}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:18px 26px}
figure{margin:12px 0 4px;min-width:0;container-type:inline-size}
figcaption{color:var(--soft);font-size:13.5px;margin-top:4px}
.wide{overflow-x:auto;margin:10px 0;background:
 linear-gradient(to right,var(--card) 40%,transparent) 0/36px 100% no-repeat local,
 linear-gradient(to left,var(--card) 40%,transparent) 100%/36px 100% no-repeat local,
 linear-gradient(to right,var(--shade),transparent) 0/14px 100% no-repeat scroll,
 linear-gradient(to left,var(--shade),transparent) 100%/14px 100% no-repeat scroll}
.wide::-webkit-scrollbar{height:9px}
.wide::-webkit-scrollbar-thumb{background:var(--rule);border-radius:5px}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
.table{min-width:0}
th,td{padding:6px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--rule)}
th{font-weight:600;color:var(--soft);vertical-align:bottom}
th:first-child,td:first-child,th.left,td.left{text-align:left}
td.flow{white-space:normal;min-width:16ch;overflow-wrap:anywhere;text-align:left}
tbody tr:hover{background:var(--stripe)}
tr.strong td{background:var(--strong);font-weight:600}
td small{color:var(--soft);font-weight:400;font-size:12px}
td.stack small{display:block;line-height:1.15}
td.good{color:var(--green)} td.bad{color:var(--red)} td.warn{color:var(--amber)}
.chip{display:inline-block;border-radius:9px;padding:0 8px;font-size:12px;
 border:1px solid currentColor;color:var(--tone)}
ul{margin:6px 0 10px;padding-left:20px} li{margin:3px 0;overflow-wrap:anywhere}
pre{background:var(--stripe);border-radius:8px;padding:10px 12px;margin:8px 0;
 white-space:pre-wrap;overflow-wrap:anywhere}
details{margin:10px 0} summary{cursor:pointer;color:var(--accent)}
footer{padding-bottom:40px;font-size:13.5px}
.chart{width:100%;height:auto;display:block;
 font:12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
.narrow,.middle{display:none}
@container(max-width:740px){.broad{display:none} .middle{display:block}}
@container(max-width:440px){.middle{display:none} .narrow{display:block}}
.chart text{fill:var(--ink)} .chart .tick,.chart .axis{fill:var(--soft)} .chart .axis{font-weight:600}
.chart .tick{font-variant-numeric:tabular-nums}
.chart .label{font-size:11.5px;paint-order:stroke;stroke:var(--card);stroke-width:3px}
.chart .centre{font-size:19px;font-weight:600}
.chart .grid{stroke:var(--rule);stroke-width:1}
.chart .mark{stroke:var(--soft);stroke-width:1.2;stroke-dasharray:4 3}
.chart .fill,.chart .dot{fill:var(--tone)} .chart .dot{stroke:var(--card);stroke-width:1.2}
.chart .ring{fill:var(--card);stroke:var(--tone);stroke-width:2}
.chart .hoop{fill:none;stroke:var(--tone)}
.chart .area{fill:var(--tone);opacity:.16} .chart .speck{fill:var(--tone);opacity:.6}
.chart .line{fill:none;stroke:var(--tone);stroke-width:2;stroke-linejoin:round}
.chart .span{stroke:var(--tone);stroke-width:1.4;opacity:.5}
.chart .whisker{fill:none;stroke:var(--ink);stroke-width:1.2;opacity:.7}
.chart .leader{stroke:var(--soft);stroke-width:.8;opacity:.7}
.chart .front{fill:none;stroke:var(--soft);stroke-width:1.4;stroke-dasharray:2 4}
.chart :is(.fill,.dot,.ring,.speck):hover{stroke:var(--ink);stroke-width:2;opacity:1}
@media(max-width:560px){th,td{padding:6px 7px} .facts{grid-template-columns:1fr 1fr}}
@media print{body{background:#fff} section{break-inside:avoid}}
"""


def style_sheet() -> str:
    """Return the style sheet of pages: colours for light and dark, cards, tables, charts."""
    light, dark = (_colours(palette) for palette in (_LIGHT, _DARK))
    tones = "".join(f".tone-{tone}{{--tone:var(--{tone})}}" for tone in TONES)
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media(prefers-color-scheme:dark){{:root{{{dark}}}}}{tones}{_SHEET}"
    )


def _colours(palette: dict[str, str]) -> str:
    return ";".join(f"--{name}:{colour}" for name, colour in palette.items())


_FORBID = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Section(NamedTuple):
    """A part of a page: a heading, its body, and its name in links."""

    title: str
    body: Html
    anchor: str = ""


class Program(NamedTuple):
    """What a page does: a script, the data that it reads from the element of this name, and its own sheet."""

    script: str
    data: bytes
    data_name: str
    sheet: str = ""


class Cell(NamedTuple):
    """A cell of a table: a text, a smaller one after it, and classes.

    `good`, `warn` and `bad` colour it, `left` and `flow` align it left (`flow` breaks lines), `stack`
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
    program: Program | None = None,
) -> str:
    """Return a whole HTML document.

    Args:
        title: of the page and its first heading.
        sections: what it shows, in order.
        subtitle: a sentence below the heading.
        facts: pairs of value and name, shown large at the top.
        footer: a sentence at the end.
        program: the one script that the page may run.
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
    sheet = style_sheet() + (program.sheet if program else "")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(program)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n<style>{sheet}</style>\n</head>\n"
        f"<body>\n{body}\n{_run(program)}</body>\n</html>\n"
    )


def _policy(program: Program | None) -> str:
    """Return what the page may do: run the one script with the right digest, and nothing else."""
    if program is None:
        return _FORBID
    digest = base64.b64encode(hashlib.sha256(program.script.encode()).digest()).decode()
    return f"{_FORBID}; script-src 'sha256-{digest}'"


def _run(program: Program | None) -> str:
    if program is None:
        return ""
    data = program.data.decode().replace("<", "\\u003c")  # nothing in it can end the element
    return (
        f'<script type="application/json" id="{program.data_name}">{data}</script>\n'
        f'<script type="module">{program.script}</script>\n'
    )


def paragraph(words: str, style: str | None = None) -> Html:
    """Return a paragraph."""
    return tag("p", text(words), class_=style)


def placeholder(name: str, words: str) -> Html:
    """Return a place that a program fills, with what it says until then."""
    return tag("div", paragraph(words, "soft"), id=name)


def listing(items: Iterable[str]) -> Html:
    """Return a list with a dot before each item."""
    return tag("ul", *(tag("li", text(item)) for item in items))


class DrawnAtWidth(Protocol):
    """A chart that can be drawn at any width: a chart of `charts` with all but its width given."""

    def __call__(self, *, width: float) -> Html:
        """Return the chart at this width, in pixels."""
        ...


_WIDTHS = {"broad": 1034.0, "middle": 560.0, "narrow": 350.0}
"""How wide charts are drawn: as a card in a wide window, half of one, and one on a telephone."""


def figure(chart: DrawnAtWidth, caption: str = "", heading: str = "") -> Html:
    """Return a chart with its heading above and a caption below.

    It fills its place and stays readable in it: it is drawn at three widths, of which one is shown.
    """
    above = [tag("h3", text(heading))] if heading else []
    below = [tag("figcaption", text(caption))] if caption else []
    drawn = [tag("div", chart(width=width), class_=name) for name, width in _WIDTHS.items()]
    return tag("figure", *above, *drawn, *below)


def side_by_side(*parts: Html) -> Html:
    """Return parts next to each other if the window is wide enough."""
    return tag("div", *parts, class_="pair")


def folded(summary: str, body: Html) -> Html:
    """Return something that opens when its summary is clicked."""
    return tag("details", tag("summary", text(summary)), body)


def preformatted(words: str) -> Html:
    """Return text as it is, in a fixed-width font."""
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
    """Return a table; the first column is aligned left, the others right unless their cells say otherwise.

    One that is wider than its place scrolls, and a shadow at its edge says so.

    Args:
        head: the names of the columns.
        rows: strings and cells, both escaped.
        caption: below the table.
        strong: the places of rows to highlight.
    """
    marked = set(strong)
    sides = ["left" if _is_left(cell) else None for cell in rows[0]] if rows else [None] * len(head)
    named = zip(head, sides, strict=True)
    names = tag("tr", *(tag("th", text(name), scope="col", class_=side) for name, side in named))
    lines = [
        tag("tr", *map(_cell, row), class_="strong" if place in marked else None)
        for place, row in enumerate(rows)
    ]
    # What scrolls must be reachable by keyboard, too; the caption stays where it is.
    scrolled = tag(
        "div", tag("table", tag("thead", names), tag("tbody", *lines)),
        class_="wide", tabindex=0, role="region", aria_label=caption or head[0],
    )  # fmt: skip
    below = [tag("p", text(caption), class_="note")] if caption else []
    return tag("div", scrolled, *below, class_="table")


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
