"""`ctxgc lab fit` and `ctxgc lab ablate`: constants fitted to recorded runs, and what each is worth."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctxgc.cli.lab_options import (
    Runs,
    figure_columns,
    progress,
    run_options,
    subject_argument,
    write_titled,
)
from ctxgc.cli.output import OutputFile, usage_errors, write_text
from ctxgc.lab import Ablated, Ablation

# -- ablate


_ABLATE_EPILOG = """\b
Examples:
  ctxgc lab ablate default
  ctxgc lab ablate default --data DIR --set claude_code --every 4 --markdown
  ctxgc lab ablate window --data DIR --every 8 --json window.json

Exit codes: 0 done, 1 no such data, 2 usage error.
"""


@click.command(
    short_help="Show what each constant is worth: off, halved, doubled.",
    context_settings={"show_default": True},
    epilog=_ABLATE_EPILOG,
)
@subject_argument
@run_options(required=False, half="fit")
@click.option(
    "--only",
    multiple=True,
    metavar="CONSTANT",
    help="Only this constant; may be repeated.  [default: all]",
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

    SUBJECT is a preset (default, lean, careful), replayed with room enough, or `window`, replayed with
    half and with a quarter of the room. "Off" is the value that disables the idea: no hold, no guard, no
    share. The first row has the figures of the constants that ship, the others the difference to them:
    the bill as a share of never pruning, everything else in percentage points.

    The same runs give the same table, whatever --jobs.
    """
    from ctxgc.lab import Experiment, Trials, fit_target, variations  # noqa: PLC0415
    from ctxgc.lab import ablate as ablated  # noqa: PLC0415
    from ctxgc.session import price_sheet  # noqa: PLC0415

    chosen = fit_target(subject)
    experiment = Experiment(policies=(), **runs)
    with usage_errors():
        tried, prices = variations(chosen, only), price_sheet(experiment.sheet)
    played = experiment.all_runs()
    total = len(played) * len(chosen.regimes) * (1 + len(tried))
    with progress(lambda: total) as done, Trials(played, prices, jobs, done) as trials:
        found = ablated(chosen, experiment, trials, tried)
    if json_file is not None:
        _write_ablation(json_file, found)
    if not quiet:
        click.echo(markdown_table(found), nl=False) if markdown else draw(found)


def _write_ablation(file: Path, found: object) -> None:
    from ctxgc.drawing import readable_json  # noqa: PLC0415
    from ctxgc.files import write_atomic  # noqa: PLC0415

    write_atomic(file, readable_json(found))


# -- The table of ablate


_RATIOS = ("bill", "worst")
_MANY = 100_000
_TITLES = {
    "line_step": "line-step",
    "bits": "bits excess",
    "non_resident_50": "not resident, 50%",
    "non_resident_25": "not resident, 25%",
}


def draw(found: Ablation) -> None:
    """Write an ablation to stdout."""
    write_text(_headline(found), indent="")
    rows = [[(cell, style) for cell in row] for row, style in _rows(found)]
    write_titled("", figure_columns(_titles(found)), rows, keys=2)
    write_text(_idle(found), indent="")


def markdown_table(found: Ablation) -> str:
    """Return an ablation as Markdown: what was replayed, the table, and the constants without effect."""
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
    yield (
        ["as shipped", "", *(_figure(key, value) for key, value in found.reached.items())],
        "title",
    )
    last = ""
    for row in found.rows:
        name = "" if row.constant == last else _name(found, row)
        last = row.constant
        moved = (_difference(key, value) for key, value in row.difference.items())
        yield [name, _value(row), *moved], "" if row.matters else "faint"


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
    return f"{value:.3f}" if key in _RATIOS else f"{100 * value:.{_digits(key)}f}"


def _difference(key: str, value: float) -> str:
    said = f"{value:+.3f}" if key in _RATIOS else f"{100 * value:+.{_digits(key)}f}"
    return "0" if float(said) == 0 else said


def _digits(key: str) -> int:
    return 2 if key == "bits" else 1


def _idle(found: Ablation) -> str:
    if not found.idle:
        return "Each constant moves something by a tenth of a point, or the bill by a thousandth."
    return (
        f"Nothing moves by a tenth of a point, nor the bill by a thousandth, with other values of: "
        f"{', '.join(found.idle)}."
    )


if TYPE_CHECKING:
    from ctxgc.lab import Experiment, Measures

_EPILOG = """\b
Examples:
  ctxgc lab fit default --data DIR --set claude_code --rounds 60 -o price.json
  ctxgc lab fit window --data DIR --set claude_code --every 4 -o room.json
"""


@click.command(
    short_help="Search for constants that do better on recorded runs.",
    context_settings={"show_default": True},
    epilog=_EPILOG,
)
@subject_argument
@run_options(required=True, half="fit")
@click.option("--rounds", type=click.IntRange(min=0), default=60, help="Number of changes to try.")
@click.option("--seed", type=int, default=1, help="Random seed of the changes.")
@click.option(
    "--output",
    "-o",
    type=OutputFile(),
    help="Write the file of constants with the new values.",
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
    """Search for constants that do better on recorded runs and keep the promises.

    SUBJECT is a preset, whose runs should become cheaper (default, lean, careful), or `window`: fewer
    needs that are not resident with half and with a quarter of the room, no fewer line-steps than at
    the start, and hardly more to pay.

    Each round changes a few constants at random and replays all runs of the half that is there to fit;
    the same seed tries the same changes, whatever --jobs. The other half judges what was found. The file
    names the runs, the seed and both results. It takes effect when it replaces the one that ships.
    """
    from ctxgc.lab import (  # noqa: PLC0415
        Experiment,
        Trials,
        fit_constants,
        fit_target,
        judge_constants,
    )
    from ctxgc.session import price_sheet  # noqa: PLC0415

    chosen = fit_target(subject)
    experiment = Experiment(policies=(), **runs)
    with usage_errors():
        prices = price_sheet(experiment.sheet)
    with Trials(experiment.all_runs(), prices, jobs) as trials:
        best, found = fit_constants(
            chosen, partial(trials.judge, chosen), rounds=rounds, seed=seed, tell=_tell
        )
    judged = judge_constants(chosen, best, experiment, jobs)
    reached = f"{_said(found)}; {_judged(judged)}"
    write_text(reached, indent="")
    if output is not None:
        made = f"{_of(experiment, len(trials.runs))}; seed {seed}, {rounds} rounds, "
        _write(output, chosen.file(best, f"{made}{datetime.now(UTC):%Y-%m-%d}; {reached}"))


def _judged(found: tuple[int, Measures] | None) -> str:
    if found is None:
        return "no runs were left to judge them"
    return f"on the {found[0]} that judge: {_said(found[1])}"


def _tell(number: int, found: Measures) -> None:
    click.echo(f"round {number:4d}  {_said(found)}", err=True)


def _of(experiment: Experiment, runs: int) -> str:
    return f"{runs} runs of {experiment.source}, {experiment.sheet}"


def _write(output: Path, content: bytes) -> None:
    from ctxgc.files import write_atomic  # noqa: PLC0415

    write_atomic(output, content)


def _said(found: Measures) -> str:
    return ", ".join(f"{key} {value:.4f}" for key, value in found.items())
