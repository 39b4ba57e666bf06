"""Options that the commands of the lab share: which runs, at what price, on how many cores."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click

from ctxgc.cli.output import write_table, write_text
from ctxgc.drawing import Column, Entry

Runs = dict[str, Any]
"""The fields of an `Experiment` that choose its runs."""

_RUNS = "A file of runs, a transcript, or a folder of them"

subject_argument = click.argument(
    "subject", type=click.Choice(["default", "lean", "careful", "window"])
)


def run_options(
    *, required: bool, jobs: bool = True, half: str = "both"
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that choose runs, as `runs`, and `jobs` unless it has one process only.

    Where data is not required, our corpus is the default. `half` is the half of the runs that the command
    takes unless told otherwise.
    """
    options = (
        click.option(
            "--data",
            type=click.Path(exists=True, path_type=Path),
            required=required,
            help=f"{_RUNS}." if required else f"{_RUNS}; by default the corpus of ctxgc.",
        ),
        click.option("--set", "set_name", default="", help="Read only this file from the folder."),
        click.option(
            "--least-tokens",
            type=click.IntRange(min=0),
            default=8_000,
            help="Skip shorter runs.",
        ),
        click.option("--every", type=click.IntRange(min=1), default=1, help="Use every n-th run."),
        click.option(
            "--half",
            type=click.Choice(["fit", "judge", "both"]),
            default=half,
            help="The half of the runs that constants are fitted on, the one that judges, or both.",
        ),
        click.option(
            "--limit-runs", type=click.IntRange(min=1), help="Use at most this many runs."
        ),
        click.option("--sheet", default="anthropic-5m", help="The price sheet."),
        click.option(
            "--jobs", "-j", type=click.IntRange(min=1), default=1, help="Number of processes."
        ),
    )

    def give(command: Callable[..., None]) -> Callable[..., None]:
        given = _with_runs(command)
        for option in reversed(options if jobs else options[:-1]):
            given = option(given)
        return given

    return give


def check_set(data: Path | None, set_name: str) -> None:
    """Check that a set comes with data.

    Raises:
        UsageError: there is a set, but no data.
    """
    if set_name and data is None:
        raise click.UsageError("--set names a file in the folder given by --data")


def _with_runs(command: Callable[..., None]) -> Callable[..., None]:
    @wraps(command)
    def call(*, limit_runs: int | None, **given: Any) -> None:
        check_set(given["data"], given["set_name"])
        fields = ("data", "set_name", "least_tokens", "every", "half", "sheet")
        runs: Runs = {field: given.pop(field) for field in fields}
        command(runs={**runs, "most_runs": limit_runs}, **given)

    return call


# -- Tables


def write_titled(
    title: str,
    columns: Sequence[Column | str],
    rows: Sequence[Sequence[Entry]],
    *,
    keys: int = 1,
) -> None:
    """Write a table after a blank line and its title, if it has one."""
    click.echo()
    if title:
        write_text(title, "title", indent="")
    write_table(columns, rows, indent="", keys=keys)


def figure_columns(names: Sequence[str], texts: int = 2) -> list[Column]:
    """Return columns of which the first are text, the others figures."""
    return [Column(name, right=place >= texts) for place, name in enumerate(names)]


# -- Progress


@contextmanager
def progress(count: Callable[[], int]) -> Iterator[Callable[[], None]]:
    """Draw a progress bar on stderr if that is a terminal; yields a function that advances it by one.

    `count` returns the number of steps, and is only called once the bar is there.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console  # noqa: PLC0415 - keeps help quick
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task("reading", total=None)
        bar.update(task, total=count(), description="runs")
        yield lambda: bar.advance(task)
