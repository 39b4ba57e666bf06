"""The table of `ctxgc lab ablate`: for a terminal, and as Markdown."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ctxgc.lab.ablate import Ablated, Ablation

PIPED_WIDTH = 150
_RATIOS = ("bill", "worst")
_MANY = 100_000
_TITLES = {
    "line_step": "line-step",
    "non_resident_50": "not resident, 50%",
    "non_resident_25": "not resident, 25%",
}


def draw(found: Ablation) -> None:
    """Write an ablation to stdout."""
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False)
    console.print(_headline(found), soft_wrap=True)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, title in enumerate(_titles(found)):
        table.add_column(title, justify="right" if number > 1 else "left", no_wrap=True)
    for row, style in _rows(found):
        table.add_row(*row, style=style)
    console.print(table)
    console.print(_idle(found), soft_wrap=True)


def markdown_table(found: Ablation) -> str:
    """Return an ablation as Markdown: what was played, the table, and what moved nothing."""
    titles = _titles(found)
    rule = ["---", "---", *["--:"] * (len(titles) - 2)]
    lines = [titles, rule, *(row for row, _ in _rows(found))]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{_headline(found)}\n\n{table}\n\n{_idle(found)}\n"


def _headline(found: Ablation) -> str:
    regimes = " and ".join(found.regimes)
    return f"{found.subject}: {found.runs} runs of {found.source}; {regimes}, {found.sheet}."


def _titles(found: Ablation) -> list[str]:
    return ["constant", "set to", *(_TITLES.get(key, key) for key in found.reached)]


def _rows(found: Ablation) -> Iterator[tuple[list[str], str]]:
    """Yield the cells of each row, and the style that a terminal shows them in."""
    yield ["as shipped", "", *(_figure(key, value) for key, value in found.reached.items())], "bold"
    last = ""
    for row in found.rows:
        name = "" if row.constant == last else _name(found, row)
        last = row.constant
        moved = (_difference(key, value) for key, value in row.difference.items())
        yield [name, _value(row), *moved], "" if row.matters else "dim"


def _name(found: Ablation, row: Ablated) -> str:
    """Return a constant with its value, or only the name of several."""
    alone = row.constant in found.constants
    return f"{row.constant} {found.constants[row.constant]:g}" if alone else row.constant


def _value(row: Ablated) -> str:
    values = set(row.values.values())
    if row.what == "off" and max(values) >= _MANY:
        return "off"
    if len(row.values) > 1 and row.what != "off":
        return row.what
    said = f"{max(values):g}"
    return f"{said} (off)" if row.what == "off" else said


def _figure(key: str, value: float) -> str:
    return f"{value:.3f}" if key in _RATIOS else f"{100 * value:.1f}"


def _difference(key: str, value: float) -> str:
    said = f"{value:+.3f}" if key in _RATIOS else f"{100 * value:+.1f}"
    return "0" if float(said) == 0 else said


def _idle(found: Ablation) -> str:
    if not found.idle:
        return "Each constant moves something by a tenth of a point, or a thousandth of the bill."
    return (
        f"Nothing moves by a tenth of a point, or a thousandth of the bill, with other values of: "
        f"{', '.join(found.idle)}."
    )
