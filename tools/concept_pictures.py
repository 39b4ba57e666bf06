"""Draw the pictures of docs/concepts/garbage-collection.md as SVG.

What they show of a session is that of the page's own example: its code is run, and drawn is what it finds.
The same page gives the same bytes. They follow the reader's light or dark theme.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from ctxgc.collector import Analysis
from ctxgc.core import ContextSegment
from ctxgc.drawing import Html, joined, shortened, tag
from tools.requirement_scan import ROOT

PAGE = ROOT / "docs" / "concepts" / "garbage-collection.md"
WIDTH = 860
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

_STYLE = """
svg{--ink:#1f2430;--soft:#667085;--line:#98a2b3;--card:#fff;--live:#e3f4ec;--livel:#2f9e6e;
--dead:#fdecea;--deadl:#d0493c;--note:#eef2fb;--notel:#4a6fd4;--warm:#fff4dc;--warml:#c98a12;
font:13px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
@media(prefers-color-scheme:dark){svg{--ink:#e6e9ef;--soft:#98a2b3;--line:#667085;--card:#161b22;
--live:#12382a;--livel:#4cc38a;--dead:#43201d;--deadl:#f07a6e;--note:#1c2a4a;--notel:#7f9cf0;
--warm:#3d2f10;--warml:#e0ac46}}
.back{fill:var(--card)} text{fill:var(--ink)} .small{font-size:11.5px;fill:var(--soft)}
.code{font:11.5px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.gone{fill:var(--soft);opacity:.75} .head{font-weight:600}
.frame{fill:none;stroke:var(--line);stroke-dasharray:5 4}
.card{fill:var(--card);stroke:var(--line)} .live{fill:var(--live);stroke:var(--livel)}
.dead{fill:var(--dead);stroke:var(--deadl)} .note{fill:var(--note);stroke:var(--notel)}
.warm{fill:var(--warm);stroke:var(--warml)} .link{stroke:var(--line);stroke-width:1.5;fill:none}
.arrow{fill:var(--line)} .said{fill:var(--deadl);font-size:11.5px} .kept{fill:var(--livel)}
""".strip()


def _picture(title: str, height: float, *parts: Iterable[Html]) -> bytes:
    inside = [
        tag("title", _text(title)),
        tag("style", Html(_STYLE)),
        tag("rect", class_="back", width=WIDTH, height=height, rx=10),
        *(piece for part in parts for piece in part),
    ]
    drawn = tag("svg", *inside, xmlns="http://www.w3.org/2000/svg", role="img",
                viewBox=f"0 0 {WIDTH} {height:.0f}", width=WIDTH, height=round(height))  # fmt: skip
    return f"{drawn}\n".encode()


def _text(words: str) -> Html:
    return Html(html.escape(words))


def _label(x: float, y: float, words: str, style: str = "", anchor: str = "start") -> Html:
    keep = "white-space:pre" if style.startswith("code") else None
    return tag("text", _text(words), x=x, y=y, class_=style or None, text_anchor=anchor, style=keep)


def _box(x: float, y: float, width: float, height: float, style: str, *lines: str) -> Html:
    """A box with a heading in its first line and smaller lines under it, in the middle."""
    top = y + height / 2 - 8 * (len(lines) - 1) + 4
    said = [
        _label(x + width / 2, top + 16 * n, line, "small" if n else "head", "middle")
        for n, line in enumerate(lines)
    ]
    return joined([tag("rect", x=x, y=y, width=width, height=height, rx=8, class_=style), *said])


def _arrow(x: float, y: float, to_x: float, to_y: float) -> Html:
    """A straight arrow, to the right, to the left, down or up."""
    across = (to_x > x) - (to_x < x)
    down = (to_y > y) - (to_y < y)
    side_x, side_y = 4 * down, 4 * across
    back_x, back_y = to_x - 8 * across, to_y - 8 * down
    head = (
        f"M{to_x} {to_y}L{back_x + side_x} {back_y + side_y}L{back_x - side_x} {back_y - side_y}Z"
    )
    line = tag("path", d=f"M{x} {y}L{back_x} {back_y}", class_="link")
    return joined([line, tag("path", d=head, class_="arrow")])


# -- The path


def path(_: Path) -> bytes:
    """Return the life of a message: one path, and the way back."""
    return _picture("The life of a message: one path from append to view, and back by recall", 356,
                    _path_boxes(), _path_arrows())  # fmt: skip


def _path_boxes() -> Iterator[Html]:
    for n, lines in enumerate((("append", "a provider's message"), ("heap", "segments and links"),
                               ("watch", "zone, alert, checkpoint"))):  # fmt: skip
        yield _box(60 + 270 * n, 20, 200, 48, "card", *lines)
    yield tag("rect", x=20, y=104, width=820, height=106, rx=12, class_="frame")
    yield _label(36, 124, "the collector, before each request", "small")
    asked = (
        ("liveness", "who may leave, and why"),
        ("worth", "what of it must stay"),
        ("price", "does it pay now"),
        ("room", "how much must go"),
    )
    for n, lines in enumerate(asked):
        yield _box(36 + 200 * n, 136, 184, 56, "note", *lines)
    done = (
        ("plan", "entries + evidence", "warm"),
        ("invariants", "valid, roots there", "warm"),
        ("stash", "durable, under a handle", "live"),
        ("view", "what the model sees", "live"),
    )
    for n, (name, said, style) in enumerate(done):
        yield _box(36 + 200 * n, 246, 184, 56, style, name, said)


def _path_arrows() -> Iterator[Html]:
    yield from (_arrow(x, 44, x + 70, 44) for x in (260, 530))
    yield _arrow(700, 68, 700, 104)
    yield from (_arrow(x, 164, x + 16, 164) for x in (220, 420, 620))
    yield _arrow(128, 210, 128, 246)
    yield from (_arrow(x, 274, x + 16, 274) for x in (220, 420, 620))
    yield tag("path", d="M528 302L528 322L728 322L728 310", class_="link")
    yield tag("path", d="M728 302L724 310L732 310Z", class_="arrow")
    yield _label(628, 340, "recall: by handle, by search, by itself", "small", "middle")


# -- The example of the page


@cache
def example(last: str) -> dict[str, Any]:
    """Run the code of the page, block by block, until it has given this name; return its names."""
    found: dict[str, Any] = {}
    for code in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        exec(code, found)  # noqa: S102 - our own page
        if last in found:
            break
    return found


def _said(segment: ContextSegment) -> str:
    if segment.part == "tool_result":
        done = segment.file_path or segment.command or ""
        return f"{segment.access} {done}" if segment.file_path else done
    return shortened(segment.text, 30)


def liveness(_: Path) -> bytes:
    """Return the segments of the example: roots, what they reach, and what is loose, with the evidence."""
    found = example("plan")
    analysis = found["tagged"]
    evidence = {c.segment_id: _short(str(c.evidence)) for c in found["plan"].candidates}
    boxes: list[Html] = []
    spots: dict[str, tuple[int, int]] = {}
    filled = [0, 0, 0]
    for segment in analysis.state.heap:
        if segment.part == "tool_call":
            continue
        place, why = _standing(analysis, segment.segment_id, evidence)
        x, y = spots[segment.segment_id] = 20 + 280 * place, 54 + 58 * filled[place]
        filled[place] += 1
        title, style = f"{segment.segment_id}  {_said(segment)}", "dead" if place == 2 else "live"
        boxes.append(_box(x, y, 260, 48, style, title, why))
    names = ("roots, each by a rule", "what they reach, link by link", "loose, with the evidence")
    heads = [_label(20 + 280 * n, 36, name, "head") for n, name in enumerate(names)]
    links = _links(analysis, spots)
    height = 70 + 58 * max(filled)
    return _picture(
        "Liveness: roots, what they reach, and what is loose", height, heads, links, boxes
    )


def _standing(analysis: Analysis, segment_id: str, evidence: dict[str, str]) -> tuple[int, str]:
    """Return the column of a segment, and the words under it."""
    if rules := analysis.roots.why(segment_id):
        return 0, ", ".join(rules)
    if analysis.is_reachable(segment_id):
        return 1, analysis.chain(segment_id)[-1].via
    return 2, evidence.get(segment_id, "unreachable")


def _links(analysis: Analysis, spots: dict[str, tuple[int, int]]) -> Iterator[Html]:
    """Draw the last link of each chain between two segments that are drawn."""
    for segment_id, (x, y) in spots.items():
        source = [hop.segment_id for hop in analysis.chain(segment_id)[-2:-1]]
        for start_x, start_y in [spots[one] for one in source if one in spots]:
            yield tag("path", d=f"M{start_x + 260} {start_y + 24}L{x} {y + 24}", class_="link")


def _short(evidence: str) -> str:
    return re.sub(r" by the (read|run|edit) of .*? at", " at", evidence)


def worth(_: Path) -> bytes:
    """Return a result line by line: what stays of it, and what does not."""
    found = example("cached")
    before, after = found["log"].splitlines(), found["stub"].splitlines()
    shown = [*range(6), *range(len(before) - 4, len(before))]
    rows = []
    y = 60.0
    for last, n in zip([-1, *shown], shown, strict=False):
        if n > last + 1:
            rows.append(_label(36, y, f"... {n - last - 1} more such lines ...", "small"))
            y += 18
        is_kept = before[n] in after
        rows.append(
            _label(36, y, shortened(before[n], 50), "code kept" if is_kept else "code gone")
        )
        y += 18
    stub = [_label(456, 60 + 18 * n, line, "code") for n, line in enumerate(_wrapped(after))]
    frames = [
        tag("rect", x=20, y=40, width=380, height=y - 40, rx=8, class_="card"),
        tag("rect", x=440, y=40, width=400, height=18 * len(stub) + 12, rx=8, class_="live"),
        _arrow(404, 70, 436, 70),
        _label(
            20,
            28,
            f"the result: {len(before)} lines, {found['won'] + found['left']:,} tokens",
            "head",
        ),
        _label(440, 28, f"what stays in its place: {found['left']:,} tokens", "head"),
    ]
    return _picture("Worth: of a long result the one line stays that nothing else holds", y + 20,
                    frames, rows, stub)  # fmt: skip


def _wrapped(lines: list[str]) -> Iterator[str]:
    for line in lines:
        head, mark, rest = line.partition("; ")
        yield head + mark.rstrip()
        if rest:
            yield f"  {rest}"


# -- Price and room


def price(_: Path) -> bytes:
    """Return a request before and after a cut: what is read from the cache, and what is written anew."""
    found = example("cached")
    won, rewritten, cached = found["won"], found["rewritten"], found["cached"]
    left = found["left"]
    scale = 780 / (cached + won + rewritten)
    rows: list[Html] = []
    before = ((cached, "live", "read from the cache"), (won + left, "dead", "a build log, idle"),
              (rewritten - left, "live", ""))  # fmt: skip
    after = ((cached, "live", "read from the cache"), (rewritten, "warm", ""))
    for y, name, parts in ((50, "before", before), (130, "after", after)):
        rows.append(_label(40, y - 8, name, "head"))
        x = 40.0
        for tokens, style, said in parts:
            width = max(3.0, tokens * scale)
            rows.append(tag("rect", x=x, y=y, width=width, height=40, class_=style))
            if said:
                rows.append(_label(x + width / 2, y + 18, said, "", "middle"))
                rows.append(_label(x + width / 2, y + 33, f"{tokens:,} tokens", "small", "middle"))
            x += width
    rows.append(_label(x + 10, 155, f"written anew: {rewritten:,} tokens"))
    rows.append(_label(40, 198, f"each later request reads {won:,} tokens less; {rewritten:,} are "
                                "written once at a higher price"))  # fmt: skip
    return _picture("Price: a cut near the end re-writes little and saves in every later request", 220,
                    rows)  # fmt: skip


_STAGES = (
    ("1  superseded", "read or run again, copies", "dead"),
    ("2  unreachable", "no root leads to it", "dead"),
    ("3  reachable", "least worth first", "warm"),
    ("4  recent turns", "if nothing else is left", "warm"),
    ("never", "what must stay, and pins", "live"),
)


def order(_: Path) -> bytes:
    """Return the order of leaving when room must be made."""
    rows = []
    for n, (name, said, style) in enumerate(_STAGES):
        rows.append(_box(24 + 166 * n, 44 + 18 * n, 150, 60, style, name))
        rows.append(_label(99 + 166 * n, 122 + 18 * n, said, "small", "middle"))
    head = [
        _label(24, 26, "leaves first", "head"),
        _label(838, 26, "leaves last", "head", "end"),
        _arrow(120, 22, 750, 22),
        _label(430, 224, "It stops as soon as the target is met. Within a stage: S4's priority in the danger "
               "and critical zones, then worth per token, then age.", "small", "middle"),
    ]  # fmt: skip
    return _picture("Room: the order of leaving", 240, head, rows)
