"""`ctxgc demo`: watch a session fill its window, and a collection run."""

from __future__ import annotations

import importlib

import click


@click.command(context_settings={"show_default": True})
@click.option("--segments", type=click.IntRange(min=1), default=1_000, help="How long it is.")
@click.option("--seed", type=int, default=7, help="Which session is told.")
def demo(segments: int, seed: int) -> None:
    """Run an invented agent session through the engine and show what happens.

    Nothing is written, and no model is asked.
    """
    # By name: the demo is a room beside this one, not below it.
    runner = importlib.import_module("ctxgc.demo.__main__")
    runner.main(["--segments", str(segments), "--seed", str(seed)])
