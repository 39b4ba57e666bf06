"""What the commands of the lab share: which runs, at what price, on how many cores."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click

Runs = dict[str, Any]
"""What chooses the runs of an `Experiment`, by its fields."""

_RUNS = "A file of runs, a transcript, or a folder of them"

subject_argument = click.argument(
    "subject", type=click.Choice(["default", "lean", "careful", "window"])
)


def run_options(*, required: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that choose runs, as `runs`, and `jobs`.

    Without data, if it may be, our corpus is played.
    """
    options = (
        click.option(
            "--data",
            type=click.Path(exists=True, path_type=Path),
            required=required,
            help=f"{_RUNS}." if required else f"{_RUNS}; else the corpus of ctxgc.",
        ),
        click.option(
            "--set", "set_name", default="", help="Of a folder, only the file of this name."
        ),
        click.option(
            "--least-tokens",
            type=click.IntRange(min=0),
            default=8_000,
            help="Pass over shorter runs.",
        ),
        click.option(
            "--every", type=click.IntRange(min=1), default=1, help="Use one run in so many."
        ),
        click.option("--limit-runs", type=click.IntRange(min=1), help="Only the first of these."),
        click.option("--sheet", default="anthropic-5m", help="The price sheet."),
        click.option(
            "--jobs", "-j", type=click.IntRange(min=1), default=1, help="Processes to use."
        ),
    )

    def give(command: Callable[..., None]) -> Callable[..., None]:
        given = _with_runs(command)
        for option in reversed(options):
            given = option(given)
        return given

    return give


def check_set(data: Path | None, set_name: str) -> None:
    """Make sure that a set is one of some data.

    Raises:
        UsageError: there is a set, and no data.
    """
    if set_name and data is None:
        raise click.UsageError("--set chooses a file of the folder that --data names")


def _with_runs(command: Callable[..., None]) -> Callable[..., None]:
    @wraps(command)
    def call(*, limit_runs: int | None, **given: Any) -> None:
        check_set(given["data"], given["set_name"])
        fields = ("data", "set_name", "least_tokens", "every", "sheet")
        runs: Runs = {field: given.pop(field) for field in fields}
        command(runs={**runs, "most_runs": limit_runs}, **given)

    return call


# -- A bar on stderr, where somebody watches it, for commands of the lab that take their time


@contextmanager
def progress(count: Callable[[], int]) -> Iterator[Callable[[], None]]:
    """Draw a bar; yields what moves it on by one. `count` says how many there are, and is asked last."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console  # noqa: PLC0415 - help must be there at once
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
