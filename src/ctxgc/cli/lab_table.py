"""The table of `ctxgc lab run`, as a terminal shows it."""

from __future__ import annotations

import sys

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ctxgc.cli.stash_store import count
from ctxgc.drawing.terminal import STYLES, Line
from ctxgc.drawing.terminal_scatter import Point, scatter
from ctxgc.lab.figures import Figure
from ctxgc.lab.summary import Report, Row, is_usable

PIPED_WIDTH = 150
_COLUMNS = (
    "bill [95% CI]", "worst", "strict", "clean", "line-step", "word",
    "not resident", "named", "recall", "lost", "wide",
)  # fmt: skip
_POINT = {"ours": "safe", "oracle": "name", "base": "faint"}
_FOUND = ("invalid", "over limit", "breaks / collections", "report off by", "newest shown")


def draw(report: Report) -> None:
    """Write a report to stdout."""
    tty = sys.stdout.isatty()
    console = Console(width=None if tty else PIPED_WIDTH, highlight=False)
    console.print(_headline(report), soft_wrap=True)
    console.print(_quality(report))
    console.print(_soundness(report))
    if report.gaps:
        console.print(_gaps(report))
    for line in _front(report):
        console.print(Text.assemble(*((text, STYLES[style]) for text, style in line)))
    if any(row.times for row in report.rows):
        console.print(_times(report))
    for row in report.rows:
        for error in row.errors:
            console.print(f"{row.policy}: {row.failed} runs failed: {error}", style="red")
    console.print(
        "An open-loop, lexical proxy: it says whether what was used next still stood in the view, "
        "not whether a task succeeds.",
        style="dim",
        soft_wrap=True,
    )


def _headline(report: Report) -> str:
    return (
        f"{count(report.runs, 'run')} in {count(report.groups, 'group')}, "
        f"{count(report.requests, 'request')}, {report.tokens:,} tokens, "
        f"{count(report.steps, 'step')} with {count(report.needs, 'need')}\n"
        f"{report.source} - {report.regime}, {report.sheet.name}"
    )


def _quality(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("policy", no_wrap=True)
    for name in _COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    for row in report.rows:
        table.add_row(Text(row.policy, style=_style(row)), *_figures(row))
    return table


def _figures(row: Row) -> list[str]:
    if not row.runs:
        return ["failed"]
    shares = (row.strict, row.clean, row.line_step, row.word)
    rest = (row.non_resident, row.named, row.recallable, row.lost, row.wide)
    return [
        _interval(row.bill),
        f"{row.worst:.2f}",
        *map(_percent, shares),
        *map(_percent, rest),
    ]


def _percent(figure: Figure) -> str:
    return f"{100 * figure.value:.1f}"


def _soundness(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("policy", no_wrap=True)
    table.add_column("kind, version", no_wrap=True)
    for name in _FOUND:
        table.add_column(name, justify="right", no_wrap=True)
    for row in report.rows:
        table.add_row(
            Text(row.policy, style=_style(row)),
            f"{row.kind} {row.version}",
            _alarm(row.refused, f"{row.refused} ({', '.join(row.rules)})"),
            _alarm(row.over, f"{row.over} (+{row.over_excused} excused)"),
            _breaks(row),
            "-" if row.report_error is None else f"{100 * row.report_error:.1f}%",
            _percent(row.newest),
        )
    return table


def _alarm(count: int, said: str) -> Text:
    return Text(said, style="red") if count else Text("0")


def _breaks(row: Row) -> Text:
    if row.collections is None:
        return Text(f"{row.breaks} / -")
    return Text(f"{row.breaks} / {row.collections:g}", style="red" if row.off else "")


def _gaps(report: Report) -> Table:
    title = "beside the clairvoyants and the best of the others (ratios)"
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for name in ("policy", "beside", "bill [95% CI]", "not resident [95% CI]"):
        table.add_column(name, justify="right" if "CI" in name else "left", no_wrap=True)
    for gap in report.gaps:
        missing = "-" if gap.non_resident is None else _interval(gap.non_resident)
        table.add_row(gap.policy, f"{gap.other} ({gap.role})", _interval(gap.bill), missing)
    return table


def _front(report: Report) -> list[Line]:
    """Plot the bill against clean steps, where there is more than one policy to compare."""
    points = [
        Point(
            row.policy,
            row.bill.value,
            100 * row.clean.value,
            _POINT.get(row.kind, ""),
            is_usable(report, row),
        )
        for row in report.rows
        if row.runs
    ]
    return scatter(points, x="bill", y="clean steps, %") if len(points) > 2 else []


def _interval(figure: Figure) -> str:
    return f"{figure.value:.3f} [{figure.low:.2f},{figure.high:.2f}]"


def _times(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title="ms per decision", title_justify="left")
    for name in ("policy", "messages", "requests", "p50", "p99", "most"):
        table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
    for row in report.rows:
        for span in row.times:
            size = "more" if span.below is None else f"< {span.below:,}"
            cells = (f"{span.p50:.2f}", f"{span.p99:.2f}", f"{span.most:.2f}")
            table.add_row(row.policy, size, f"{span.requests:,}", *cells)
    return table


def _style(row: Row) -> str:
    return {"ours": "bold green", "oracle": "cyan", "base": "dim"}.get(row.kind, "")
