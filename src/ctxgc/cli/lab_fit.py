"""`ctxgc lab fit`: fit the constants of the default policy to recorded runs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from ctxgc.economics import price_sheet
from ctxgc.lab import fit as fitting
from ctxgc.lab.needs import Needs
from ctxgc.lab.regimes import parse_regime
from ctxgc.lab.runs import read_runs
from ctxgc.stores.files import write_atomic
from ctxgc.thrift.presets import Preset, coefficients, written


@click.command(
    context_settings={"show_default": True},
    epilog="Example: ctxgc lab fit default --data DIR --set claude_code --rounds 60 -o coefficients.json",
)
@click.argument("preset", type=click.Choice(["default", "lean", "careful"]))
@click.option(
    "--data",
    type=click.Path(exists=True, path_type=Path),
    required=True,
    help="A file of runs, a transcript, or a folder of them.",
)
@click.option("--set", "set_name", default="", help="Of a folder, only the file of this name.")
@click.option("--least-tokens", type=click.IntRange(min=0), default=8_000)
@click.option("--every", type=click.IntRange(min=1), default=1, help="Use one run in so many.")
@click.option("--rounds", type=click.IntRange(min=0), default=60, help="How many changes to try.")
@click.option("--seed", type=int, default=1)
@click.option("--sheet", default="anthropic-5m", help="The price sheet.")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the constants of all presets with the new ones among them.",
)
def fit(
    *,
    preset: str,
    data: Path,
    set_name: str,
    least_tokens: int,
    every: int,
    rounds: int,
    seed: int,
    sheet: str,
    output: Path | None,
) -> None:
    """Search constants for a preset that make recorded runs cheaper and keep what it promises.

    Each round changes a few constants at random and replays all runs; the same seed tries the same
    changes. The file names the runs, the seed and what was reached.
    """
    runs = [
        Needs(run)
        for number, run in enumerate(read_runs(data, least_tokens=least_tokens, name=set_name))
        if number % every == 0
    ]
    prices, regime = price_sheet(sheet), parse_regime("cost")

    def judge(constants: Preset) -> fitting.Reached:
        return fitting.reached(fitting.play(constants, runs, prices, regime))

    def tell(number: int, found: fitting.Reached) -> None:
        click.echo(f"round {number:4d}  {_said(found)}", err=True)

    goal = fitting.GOALS[preset]
    known = coefficients()
    best, found = fitting.fit(
        known.presets[preset], goal, judge, rounds=rounds, seed=seed, tell=tell
    )
    click.echo(_said(found))
    if output is not None:
        what = f"{len(runs)} runs of {set_name or data.name}, 1 in {every}, {sheet}"
        made = f"{what}; seed {seed}, {rounds} rounds, {datetime.now(UTC):%Y-%m-%d}; {_said(found)}"
        merged = fitting.with_preset(known, preset, best, made)
        write_atomic(output, written(merged))


def _said(found: object) -> str:
    return ", ".join(f"{key} {value:.4f}" for key, value in msgspec.to_builtins(found).items())
