"""Text in the columns of a terminal: how wide it is, where it is cut and wrapped, and tables.

A line is a list of spans, each with the name of its style. Whatever is written for people is laid out
here, in the columns that `terminal_width` returns. Widths are those on the screen: a Chinese letter takes
two columns, an accent none.
"""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

Span = tuple[str, str]
"""A text and the name of its style; the plain style is empty."""
Line = list[Span]
Entry = str | Span | Line
"""What a cell of a table holds."""

PIPED_WIDTH = 100
"""The columns of what does not go to a terminal."""
_NARROWEST, _WIDEST = 60, 160
_GAP = "  "
_ELLIPSIS = "…"
_NUMBER = re.compile(r"[-+~x$]?\d[\d,.]*( ?[A-Za-z%]+)?")


def terminal_width() -> int:
    """Return the columns to write in: those of the terminal, or 100 in a pipe; COLUMNS overrides both."""
    columns = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns
    return min(_WIDEST, max(_NARROWEST, columns))


def display_width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def plain(text: str, style: str = "") -> Line:
    """Return a line of one style."""
    return [(text, style)]


def text_of(line: Line) -> str:
    """Return a line without its styles."""
    return "".join(text for text, _ in line)


# -- Cutting and wrapping


def shortened(text: str, width: int, *, keep: Literal["start", "end", "ends"] = "start") -> str:
    """Return a text on one line, cut to a width: at its end, at its start, or in its middle."""
    flat = " ".join(text.split())
    if display_width(flat) <= width:
        return flat
    first = {"start": width - 1, "end": 0, "ends": (width - 1) // 2}[keep]
    head = _head(flat, first)
    rest = flat[len(head) :]
    return head + _ELLIPSIS + _head(rest[::-1], width - 1 - first)[::-1]


def _head(text: str, width: int) -> str:
    """Return as much of the beginning of a text as fits."""
    taken = 0
    for place, letter in enumerate(text):
        taken += _columns_of(letter)
        if taken > width:
            return text[:place]
    return text


def cut(line: Line, width: int) -> Line:
    """Return a line cut to a width, which ends in an ellipsis if something is missing."""
    if display_width(text_of(line)) <= width:
        return line
    left, kept = width - 1, Line()
    for text, style in line:
        part = _head(text, left)
        kept.append((part, style))
        left -= display_width(part)
        if part != text:
            break
    return [*kept, (_ELLIPSIS, kept[-1][1] if kept else "")]


def wrapped(text: str, width: int) -> list[str]:
    """Return a text as lines of at most a width; a longer word, such as a path, has its own line."""
    lines = [""]
    for word in text.split():
        if lines[-1] and display_width(lines[-1]) + 1 + display_width(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


# -- Tables


class Column(NamedTuple):
    """A column of a table.

    Numbers are aligned right unless `right` says otherwise. A column with `least` may be narrowed to that
    if the table is too wide: its texts are cut, or wrapped if they are to be kept whole. One with a rank
    may be left out, the highest rank first.
    """

    name: str = ""
    right: bool | None = None
    least: int | None = None
    keep: Literal["start", "end", "ends", "all"] = "start"
    rank: int = 0


def terminal_table(
    columns: Sequence[Column | str],
    rows: Sequence[Sequence[Entry]],
    width: int,
    *,
    indent: str = "  ",
    keys: int = 1,
) -> list[Line]:
    """Return rows in columns under a heading, no line wider than `width`; no rows give no lines.

    Where the columns do not fit even if narrowed, the rest of them follows below, the keys repeated.

    Args:
        columns: their names; if none has one, there is no heading.
        rows: a text, a styled text or a line for each column.
        width: the columns of the terminal.
        indent: before each line.
        keys: how many of the first columns say what a row is about.
    """
    if not rows:
        return []
    known = [each if isinstance(each, Column) else Column(each) for each in columns]
    cells = [[_line(entry) for entry in row] for row in rows]
    room = width - len(indent)
    places = _chosen(known, cells, room)
    lines: list[Line] = []
    for block in _blocks(known, cells, places, room, keys):
        lines += [plain("")] if lines else []
        lines += _block(known, cells, block, room, indent)
    return lines


def _line(entry: Entry) -> Line:
    if isinstance(entry, list):
        return entry
    return [entry] if isinstance(entry, tuple) else plain(entry)


def _natural(column: Column, cells: Sequence[Sequence[Line]], place: int, room: int) -> int:
    widest = max(display_width(text_of(row[place])) for row in cells)
    return min(room, max(widest, display_width(column.name)))


def _smallest(column: Column, natural: int) -> int:
    return natural if column.least is None else min(natural, max(column.least, len(column.name)))


def _chosen(columns: Sequence[Column], cells: Sequence[Sequence[Line]], room: int) -> list[int]:
    """Return the columns to show: without those of a rank that leave no room for the others."""
    places = list(range(len(columns)))
    needs = [_smallest(c, _natural(c, cells, place, room)) for place, c in enumerate(columns)]
    while _sum([needs[place] for place in places]) > room:
        spare = max(places, key=lambda place: columns[place].rank)
        if not columns[spare].rank:
            break
        places.remove(spare)
    return places


def _blocks(
    columns: Sequence[Column],
    cells: Sequence[Sequence[Line]],
    places: Sequence[int],
    room: int,
    keys: int,
) -> Iterator[list[int]]:
    """Yield the columns of each part of a table; there is one part if they fit next to each other."""
    needs = {
        place: _smallest(columns[place], _natural(columns[place], cells, place, room))
        for place in places
    }
    first, rest = list(places[:keys]), places[keys:]
    block = first
    for place in rest:
        if len(block) > keys and _sum([needs[each] for each in (*block, place)]) > room:
            yield block
            block = first
        block = [*block, place]
    yield block


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _block(
    columns: Sequence[Column],
    cells: Sequence[Sequence[Line]],
    places: Sequence[int],
    room: int,
    indent: str,
) -> list[Line]:
    chosen = [columns[place] for place in places]
    inside = [[row[place] for place in places] for row in cells]
    widths = _fitted(chosen, inside, room)
    right = [_is_right(column, inside, place) for place, column in enumerate(chosen)]
    heading = [plain(column.name, "faint") for column in chosen]
    headed = [heading, *inside] if any(column.name for column in chosen) else inside
    return [
        [(indent, ""), *line] for row in headed for line in _laid_out(row, chosen, widths, right)
    ]


def _fitted(columns: Sequence[Column], cells: Sequence[Sequence[Line]], room: int) -> list[int]:
    """Return the width of each column; the widest that may be narrowed give way first."""
    widths = [_natural(column, cells, place, room) for place, column in enumerate(columns)]
    least = [_smallest(column, width) for column, width in zip(columns, widths, strict=True)]
    while _sum(widths) > room:
        spare = [place for place, width in enumerate(widths) if width > least[place]]
        if not spare:  # a column that does not fit next to the first one alone
            last = len(widths) - 1
            widths[last] = max(1, widths[last] - (_sum(widths) - room))
            break
        widths[max(spare, key=lambda place: widths[place])] -= 1
    return widths


def _is_right(column: Column, cells: Sequence[Sequence[Line]], place: int) -> bool:
    if column.right is not None:
        return column.right
    written = [text for row in cells if (text := text_of(row[place])) not in ("", "-")]
    return bool(written) and all(_NUMBER.fullmatch(text) for text in written)


def _laid_out(
    row: Sequence[Line], columns: Sequence[Column], widths: Sequence[int], right: Sequence[bool]
) -> Iterator[Line]:
    """Yield the lines of a row: more than one where a text is wrapped."""
    parts = [
        _parts(cell, column, width)
        for cell, column, width in zip(row, columns, widths, strict=True)
    ]
    for number in range(max(map(len, parts))):
        line: Line = []
        for place, texts in enumerate(parts):
            cell = texts[number] if number < len(texts) else plain("")
            pad = " " * max(0, widths[place] - display_width(text_of(cell)))
            is_last = place == len(parts) - 1
            line += [("" if not place else _GAP, "")]
            line += [(pad, ""), *cell] if right[place] else [*cell, ("" if is_last else pad, "")]
        yield line


def _parts(cell: Line, column: Column, width: int) -> list[Line]:
    if column.keep == "all" and len(cell) == 1 and display_width(text_of(cell)) > width:
        return [cut(plain(part, cell[0][1]), width) for part in wrapped(cell[0][0], width)]
    if column.keep in ("end", "ends") and len(cell) == 1:
        return [plain(shortened(cell[0][0], width, keep=column.keep), cell[0][1])]
    return [cut(cell, width)]
