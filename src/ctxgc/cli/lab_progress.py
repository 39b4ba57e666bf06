"""A bar on stderr, where somebody watches it, for commands of the lab that take their time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
