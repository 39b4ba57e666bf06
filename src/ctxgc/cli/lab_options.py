"""What the commands that study constants share: which runs, at what price, on how many cores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def run_options(*, required: bool) -> Callable[[F], F]:
    """Give a command the options that choose runs; without data, if it may be, our corpus is played."""
    data_help = "A file of runs, a transcript, or a folder of them"
    options = (
        click.option(
            "--data",
            type=click.Path(exists=True, path_type=Path),
            required=required,
            help=f"{data_help}." if required else f"{data_help}; else the corpus of ctxgc.",
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

    def give(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return give
