"""`ctxgc demo`: watch a session fill its window, and a collection run."""

from __future__ import annotations

import importlib

import click


@click.command(context_settings={"show_default": True})
@click.option(
    "--segments",
    type=click.IntRange(min=1),
    default=1_000,
    help="Length of the session, in segments.",
)
@click.option("--seed", type=int, default=7, help="Random seed for the demo session.")
@click.option("--report", metavar="DIR", help="Write the session and its `analyze` page here.")
@click.pass_context
def demo(context: click.Context, segments: int, seed: int, report: str | None) -> None:
    """Run an invented agent in a real session and show what a collection does.

    Nothing is written without --report, and no model is called.
    """
    # By name: `ctxgc.demo` is a program of its own.
    runner = importlib.import_module("ctxgc.demo.__main__")
    wanted = [] if report is None else ["--report", report]
    context.exit(runner.main(["--segments", str(segments), "--seed", str(seed), *wanted]))
