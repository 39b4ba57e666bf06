"""`ctxgc lab ablate`: what each constant is good for, told by what happens without it."""

from __future__ import annotations

from pathlib import Path

import click

from ctxgc.cli.lab_options import Runs, run_options, subject_argument
from ctxgc.cli.lab_progress import progress
from ctxgc.cli.output_file import OutputFile
from ctxgc.cli.report import words_of_call

_EPILOG = """\b
Examples:
  ctxgc lab ablate default
  ctxgc lab ablate default --data DIR --set claude_code --every 4 --jobs 2 --markdown
  ctxgc lab ablate window --data DIR --set claude_code --every 8 --jobs 2 --json window.json

Exit codes: 0 done, 1 no such data, 2 a wrong call.
"""


@click.command(
    short_help="Show what each constant is good for: off, halved, doubled.",
    context_settings={"show_default": True},
    epilog=_EPILOG,
)
@subject_argument
@run_options(required=False)
@click.option(
    "--only",
    multiple=True,
    metavar="CONSTANT",
    help="Only this constant; again for more.  [default: all]",
)
@click.option(
    "--json",
    "json_file",
    type=OutputFile(),
    help="Write everything as JSON.",
)
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
@click.option("--quiet", "-q", is_flag=True, help="Print no table.")
def ablate(
    *,
    subject: str,
    runs: Runs,
    jobs: int,
    only: tuple[str, ...],
    json_file: Path | None,
    markdown: bool,
    quiet: bool,
) -> None:
    """Replay runs with each constant of SUBJECT switched off, halved and doubled.

    SUBJECT is a preset (default, lean, careful), played with room enough, or `window`, played with half
    and with a quarter of the room. "Off" is the value that switches the idea off: no hold, no guard, no
    share. The first row has the figures of the constants that ship, all others the difference to them:
    the bill as a share of never pruning, everything else in points of a hundred.

    The same runs give the same table, whatever --jobs.
    """
    from ctxgc.economics import price_sheet  # noqa: PLC0415 - help must be there at once
    from ctxgc.lab.ablate import ablate as ablated  # noqa: PLC0415
    from ctxgc.lab.ablate import changes  # noqa: PLC0415
    from ctxgc.lab.experiment import Experiment  # noqa: PLC0415
    from ctxgc.lab.subject import subject as subject_called  # noqa: PLC0415
    from ctxgc.lab.trials import Trials  # noqa: PLC0415

    chosen = subject_called(subject)
    experiment = Experiment(policies=(), **runs)
    with words_of_call():
        tried, prices = changes(chosen, only), price_sheet(experiment.sheet)
    played = experiment.all_runs()
    total = len(played) * len(chosen.regimes) * (1 + len(tried))
    with progress(lambda: total) as done, Trials(played, prices, jobs, done) as trials:
        found = ablated(chosen, experiment, trials, tried)
    if json_file is not None:
        _write(json_file, found)
    if not quiet:
        from ctxgc.cli.lab_ablate_table import draw, markdown_table  # noqa: PLC0415

        click.echo(markdown_table(found), nl=False) if markdown else draw(found)


def _write(file: Path, found: object) -> None:
    from ctxgc.core.readable import readable_json  # noqa: PLC0415
    from ctxgc.stores.files import write_atomic  # noqa: PLC0415

    write_atomic(file, readable_json(found))
