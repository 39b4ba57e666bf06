"""`ctxgc lab fit`: fit the constants of the default policy to recorded runs."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctxgc.cli.lab_options import Runs, run_options, subject_argument
from ctxgc.cli.output_file import OutputFile
from ctxgc.cli.report import words_of_call

if TYPE_CHECKING:
    from ctxgc.lab.experiment import Experiment
    from ctxgc.lab.subject import Reached

_EPILOG = """\b
Examples:
  ctxgc lab fit default --data DIR --set claude_code --rounds 60 -o coefficients.json
  ctxgc lab fit window --data DIR --set claude_code --every 4 -j 4 -o window_constants.json
"""


@click.command(
    short_help="Search constants that do better on recorded runs.",
    context_settings={"show_default": True},
    epilog=_EPILOG,
)
@subject_argument
@run_options(required=True)
@click.option("--rounds", type=click.IntRange(min=0), default=60, help="How many changes to try.")
@click.option("--seed", type=int, default=1, help="Chooses the changes.")
@click.option(
    "--output",
    "-o",
    type=OutputFile(),
    help="Write the file of constants with the new ones in it.",
)
def fit(
    *,
    subject: str,
    runs: Runs,
    jobs: int,
    rounds: int,
    seed: int,
    output: Path | None,
) -> None:
    """Search constants that do better on recorded runs and keep what is promised.

    SUBJECT is a preset, whose runs shall be cheaper (default, lean, careful), or `window`: fewer needs
    that are not resident with half and with a quarter of the room, no fewer line-steps than at the
    start, and hardly more to pay.

    Each round changes a few constants at random and replays all runs; the same seed tries the same
    changes, whatever --jobs. The file names the runs, the seed and what was reached. It takes effect
    where the one that ships stands.
    """
    from ctxgc.economics import price_sheet  # noqa: PLC0415 - help must be there at once
    from ctxgc.lab import fit as fitting  # noqa: PLC0415
    from ctxgc.lab.experiment import Experiment  # noqa: PLC0415
    from ctxgc.lab.subject import subject as subject_called  # noqa: PLC0415
    from ctxgc.lab.trials import Trials  # noqa: PLC0415

    chosen = subject_called(subject)
    experiment = Experiment(policies=(), **runs)
    with words_of_call():
        prices = price_sheet(experiment.sheet)
    with Trials(experiment.all_runs(), prices, jobs) as trials:
        best, found = fitting.fit(
            chosen, partial(trials.judge, chosen), rounds=rounds, seed=seed, tell=_tell
        )
    click.echo(_said(found))
    if output is not None:
        made = f"{_of(experiment, len(trials.runs))}; seed {seed}, {rounds} rounds, "
        _write(output, chosen.file(best, f"{made}{datetime.now(UTC):%Y-%m-%d}; {_said(found)}"))


def _tell(number: int, found: Reached) -> None:
    click.echo(f"round {number:4d}  {_said(found)}", err=True)


def _of(experiment: Experiment, runs: int) -> str:
    return f"{runs} runs of {experiment.source}, {experiment.sheet}"


def _write(output: Path, content: bytes) -> None:
    from ctxgc.stores.files import write_atomic  # noqa: PLC0415

    write_atomic(output, content)


def _said(found: Reached) -> str:
    return ", ".join(f"{key} {value:.4f}" for key, value in found.items())
