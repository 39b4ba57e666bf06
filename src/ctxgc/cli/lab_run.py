"""`ctxgc lab run`: every policy on every run, as a table, as JSON and as a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctxgc.cli.lab_gather import (
    GATHER_DEFAULTS,
    Gather,
    gather_options,
    play_gather,
    refuse_recorded,
)
from ctxgc.cli.lab_options import Runs, figure_columns, progress, run_options, write_titled
from ctxgc.cli.output import OutputFile, usage_errors, write_facts, write_lines, write_text
from ctxgc.drawing import (
    Column,
    Entry,
    Line,
    ScatterPoint,
    Span,
    count,
    terminal_scatter,
    terminal_width,
)
from ctxgc.lab import Figure, PolicyRow, Report, is_usable

if TYPE_CHECKING:
    from ctxgc.lab import Experiment, Report

DEFAULTS = ("never", "ctxgc", "ctxgc-lean", "ctxgc-careful")
_COST = "cost"
_STDOUT = Path("-")
_FILE = OutputFile(allow_dash=True)


@click.command(
    context_settings={"show_default": True},
    epilog="Example: ctxgc lab run --data DIR --set claude_code --policy never --policy ctxgc --jobs 4",
)
@click.option("--demo", is_flag=True, help="Use the corpus that ships with ctxgc (the default).")
@gather_options
@run_options(required=False)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="A policy, a kind of policies, or all; repeat it or use commas for more.",
)
@click.option("--regime", default=_COST, help="cost, window:50% or window:40000.")
@click.option(
    "--bits-every",
    type=click.IntRange(min=0),
    metavar="N",
    show_default=False,
    help="Compress the answer of every N-th request with its view; 0 for none.  [default: each]",
)
@click.option("--cluster", help="Run on a Dask cluster: its address, or `local`.")
@click.option("--json", "json_file", type=_FILE, help="Write the whole report as JSON.")
@click.option("--html", "html_file", type=_FILE, help="Write the report as one page.")
@click.option("--markdown", "markdown_file", type=_FILE, help="Write its tables as Markdown.")
@click.option("--timing", is_flag=True, help="Report decision times, which vary from run to run.")
@click.option(
    "--survival",
    is_flag=True,
    help="Report what became of paths, commands, numbers, decisions, errors and constraints.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print no table.")
def run(
    *,
    demo: bool,
    gather: Gather | None,
    runs: Runs,
    policies: tuple[str, ...],
    regime: str,
    jobs: int,
    bits_every: int | None,
    cluster: str | None,
    json_file: Path | None,
    html_file: Path | None,
    markdown_file: Path | None,
    timing: bool,
    survival: bool,
    quiet: bool,
) -> None:
    """Replay runs request by request through each policy, and print what it cost and what it lost.

    The same runs give the same report, byte for byte, whatever --jobs and --cluster. A report written
    to `-` is printed instead of the tables.
    """
    from ctxgc.lab import Experiment, choose_policies  # noqa: PLC0415

    if demo and runs["data"] is not None:
        raise click.UsageError("--demo and --data exclude each other")
    files = report_files(json_file, html_file, markdown_file)
    usual = DEFAULTS if gather is None else GATHER_DEFAULTS
    words = [word for each in policies or usual for word in each.split(",")]
    if gather is not None:
        refuse_recorded(
            {
                "--demo": demo,
                "--data": runs["data"],
                "--regime": regime != _COST,
                "--html": html_file,
                "--cluster": cluster,
                "--timing": timing,
                "--survival": survival,
                "--bits-every": bits_every is not None,
            }
        )
        with usage_errors():
            names = tuple(choose_policies(words))
            page = play_gather(names, gather, runs, jobs)
        write_reports({json_file: page.json, markdown_file: page.markdown})
        show_tables(files, page.draw, quiet=quiet)
        return
    with usage_errors():
        names = tuple(choose_policies(words))
        experiment = Experiment(
            policies=names,
            regime=regime,
            timing=timing,
            survival=survival,
            bits_every=bits_every,
            **runs,
        )
        experiment.order()
    found = _conducted(experiment, jobs, cluster)
    reports = {json_file: _json, html_file: _page, markdown_file: _markdown}
    write_reports({file: partial(report, found) for file, report in reports.items()})
    show_tables(files, lambda: draw(found), quiet=quiet)


def report_files(*named: Path | None) -> list[Path]:
    """Return the files that reports go to.

    Raises:
        UsageError: one is named twice.
    """
    files = [file for file in named if file is not None]
    if len({file.absolute() for file in files}) < len(files):
        raise click.UsageError("two reports cannot go to one file")
    return files


def write_reports(reports: Mapping[Path | None, Callable[[], bytes]]) -> None:
    """Write those reports that a file is given for."""
    for file, report in reports.items():
        if file is not None:
            _write(file, report())


def show_tables(files: Sequence[Path], tables: Callable[[], None], *, quiet: bool) -> None:
    """Draw the tables and name the files, unless a report went to stdout."""
    if quiet or _STDOUT in files:
        return
    tables()
    for file in files:
        click.echo(f"wrote {file}")


def _conducted(experiment: Experiment, jobs: int, cluster: str | None) -> Report:
    from ctxgc.lab import run_experiment  # noqa: PLC0415

    with progress(lambda: sum(1 for _ in experiment.runs())) as done:
        if cluster is None:
            return run_experiment(experiment, jobs, done)
        from ctxgc.lab import run_on_dask  # noqa: PLC0415

        return run_on_dask(cluster, experiment, done, jobs)


def _json(found: Report) -> bytes:
    from ctxgc.drawing import readable_json  # noqa: PLC0415

    return readable_json(found)


def _page(found: Report) -> bytes:
    from ctxgc.lab import html_report  # noqa: PLC0415

    return html_report(found).encode()


def _markdown(found: Report) -> bytes:
    from ctxgc.lab import markdown_report  # noqa: PLC0415

    return markdown_report(found).encode()


def _write(file: Path, report: bytes) -> None:
    """Write a report to a file, or print it if that is `-`."""
    from ctxgc.files import write_atomic  # noqa: PLC0415

    if file == _STDOUT:
        click.echo(report, nl=False)
    else:
        write_atomic(file, report)


# -- Tables


_COLUMNS = (
    "bill [95% CI]", "+15k", "bits excess [95% CI]", "of bare", "worst", "strict", "clean",
    "line-step", "word", "not resident", "named", "recall", "lost", "wide",
)  # fmt: skip
_STYLES = {"ours": "safe", "oracle": "name", "base": "faint"}
_SCATTER_WIDTH = 92
_LEGEND = {
    "bill": "relative to never pruning; +15k: with 15,000 more tokens of system prompt and tools",
    "bits excess": "% more bits to write down the next answer than with the whole history; of bare: "
    "in % of what a view without history costs more",
    "worst": "the largest bill of a single run",
    "strict": "% of the steps that had all they used in the view; clean: in the view or named there",
    "line-step": "% of the steps that had all the lines they used in the view; word: % of rare words",
    "not resident": "% of the things used that were not in the view; of all things used, named: there "
    "by name, recall: behind a handle, lost: neither",
    "wide": "% of the things used that were in the view with their surroundings",
}
_PROXY = (
    "An open-loop, lexical proxy: it says whether what was used next was still in the view, "
    "not whether a task succeeds."
)
_FOUND = ("invalid", "over limit", "breaks / collections", "report error", "newest shown")


def draw(report: Report) -> None:
    """Write a report to stdout."""
    for line in _headline(report):
        write_text(line, indent="")
    _quality(report)
    if report.halves:
        _halves(report)
    _soundness(report)
    if report.gaps:
        _gaps(report)
    if report.survival:
        _survival(report)
    write_lines(_front(report))
    if any(row.times for row in report.rows):
        _times(report)
    for row in report.rows:
        for error in row.errors:
            write_text(f"{row.policy}: {row.failed} runs failed: {error}", "critical", indent="")
    write_text(_PROXY, "faint", indent="")


def _headline(report: Report) -> tuple[str, str]:
    size = (
        f"{count(report.runs, 'run')} in {count(report.groups, 'group')}, "
        f"{count(report.requests, 'request')}, {report.tokens:,} tokens, "
        f"{count(report.steps, 'step')} with {count(report.needs, 'need')}"
    )
    return size, f"{report.source} - {report.regime}, {report.sheet.name}{_measured(report)}"


def _measured(report: Report) -> str:
    """Return how copied bits were measured, where that is not each request."""
    if not report.bits_every:
        return "; copied bits not measured (ctxgc[lab], --bits-every)"
    return f"; copied bits of 1 in {report.bits_every} requests" if report.bits_every > 1 else ""


def _quality(report: Report) -> None:
    rows: list[list[Entry]] = [[(row.policy, _style(row)), *_figures(row)] for row in report.rows]
    columns = [Column("policy", right=False), *(Column(name, right=True) for name in _COLUMNS)]
    write_titled("", columns, rows)
    write_facts(_LEGEND.items(), indent="  ")


def _figures(row: PolicyRow) -> list[str]:
    if not row.runs:
        return ["failed", *("-" for _ in _COLUMNS[1:])]
    shares = (row.strict, row.clean, row.line_step, row.word)
    rest = (row.non_resident, row.named, row.recallable, row.lost, row.wide)
    return [
        _interval(row.bill),
        f"{row.bill_15k.value:.3f}",
        *_bits(row),
        f"{row.worst:.2f}",
        *map(_percent, shares),
        *map(_percent, rest),
    ]


def _bits(row: PolicyRow) -> tuple[str, str]:
    if row.bits is None:
        return "-", "-"
    excess = row.bits.excess
    said = excess.interval(".1f", ",", scale=100)
    return f"{100 * excess.value:.2f}{said and f' [{said}]'}", _percent(row.bits.share)


def _percent(figure: Figure) -> str:
    return f"{100 * figure.value:.1f}"


def _soundness(report: Report) -> None:
    rows: list[list[Entry]] = [
        [
            (row.policy, _style(row)),
            f"{row.kind} {row.version}",
            _alarm(row.refused, f"{row.refused:,} ({', '.join(row.rules)})"),
            _alarm(row.over, f"{row.over:,} (+{row.over_excused:,} excused)"),
            _breaks(row),
            "-" if row.report_error is None else f"{100 * row.report_error:.1f}%",
            _percent(row.newest),
        ]
        for row in report.rows
    ]
    columns = ("policy", Column("kind, version", least=12))
    write_titled("", (*columns, *(Column(name, right=True) for name in _FOUND)), rows)


def _alarm(count: int, said: str) -> Span:
    return (said, "critical") if count else ("0", "")


def _breaks(row: PolicyRow) -> Span:
    if row.collections is None:
        return f"{row.breaks:,} / -", ""
    return f"{row.breaks:,} / {row.collections:,g}", "critical" if row.off else ""


def _gaps(report: Report) -> None:
    title = "compared with the oracles and the best of the others (ratios)"
    rows = [
        (
            gap.policy,
            f"{gap.other} ({gap.role})",
            _interval(gap.bill),
            "-" if gap.non_resident is None else _interval(gap.non_resident),
        )
        for gap in report.gaps
    ]
    figures = (Column("bill [95% CI]", right=True), Column("not resident [95% CI]", right=True))
    write_titled(title, ("policy", Column("compared with", least=16), *figures), rows)


def _survival(report: Report) -> None:
    from ctxgc.lab import SURVIVAL_COLUMNS, survival_cells  # noqa: PLC0415

    title = "evidence, % in the view / behind a handle / lost"
    write_titled(
        title, figure_columns(SURVIVAL_COLUMNS), list(map(survival_cells, report.survival)), keys=2
    )


def _halves(report: Report) -> None:
    from ctxgc.lab import HALF_COLUMNS, half_cells  # noqa: PLC0415

    runs = ", ".join(f"{each.half} {count(each.runs, 'run')}" for each in report.halves)
    title = f"half of the runs to fit, half to judge ({runs})"
    write_titled(title, figure_columns(HALF_COLUMNS), list(half_cells(report)), keys=2)


def _front(report: Report) -> list[Line]:
    """Plot the bill against clean steps, where there is more than one policy to compare."""
    points = [
        ScatterPoint(
            row.policy,
            row.bill.value,
            100 * row.clean.value,
            _style(row),
            is_usable(report, row),
        )
        for row in report.rows
        if row.runs
    ]
    if len(points) < 3:
        return []
    width = min(_SCATTER_WIDTH, terminal_width())
    return terminal_scatter(points, x="bill", y="clean steps, %", width=width)


def _interval(figure: Figure) -> str:
    said = figure.interval(".2f", ",")
    return f"{figure.value:.3f}{said and f' [{said}]'}"


def _times(report: Report) -> None:
    rows = [
        (
            row.policy,
            "more" if span.below is None else f"< {span.below:,}",
            f"{span.requests:,}",
            *(f"{value:.2f}" for value in (span.p50, span.p99, span.most)),
        )
        for row in report.rows
        for span in row.times
    ]
    columns = ("policy", Column("messages", right=True), "requests", "p50", "p99", "max")
    write_titled("ms per decision", columns, rows)


def _style(row: PolicyRow) -> str:
    return _STYLES.get(row.kind, "")
