"""`ctxgc lab explain`: one decision of one run: what left, why, what it won and cost, what was missed."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from ctxgc.cli.lab_options import check_set
from ctxgc.cli.report import output_options, words_of_call, write_json

_EPILOG = """\b
Examples:
  ctxgc lab explain demo-06 34 --regime window:50%
  ctxgc lab explain RUN 12 --data DIR --set claude_code --policy ctxgc-lean
  ctxgc lab explain demo-06 34 --json

Exit codes: 0 explained, 1 no such run or request, 2 a wrong call.
"""


@click.command(
    short_help="Show one decision: what left, why, what it won and cost, what was missed.",
    context_settings={"show_default": True},
    epilog=_EPILOG,
)
@click.argument("run")
@click.argument("step", type=click.IntRange(min=1))
@click.option(
    "--data",
    type=click.Path(exists=True, path_type=Path),
    help="A file of runs, a transcript, or a folder of them; else the corpus of ctxgc.",
)
@click.option("--set", "set_name", default="", help="Of a folder, only the file of this name.")
@click.option("--policy", "policy_name", default="ctxgc", help="One of our own policies.")
@click.option("--regime", "regime_name", default="cost", help="cost, window:50% or window:40000.")
@click.option("--sheet", "sheet_name", default="anthropic-5m", help="The price sheet.")
@click.option("--all", "show_all", is_flag=True, help="List all that left, not only the largest.")
@output_options
def explain(
    *,
    run: str,
    step: int,
    data: Path | None,
    set_name: str,
    policy_name: str,
    regime_name: str,
    sheet_name: str,
    show_all: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Replay RUN with a policy of ours and show what it decided at its request number STEP.

    RUN is the id of a run, or a part of it that only one has. What was missed later is known because
    the whole run is replayed: it shows for each thing that left who needed it, and whether it was
    still in the view, named, behind a handle, or lost.
    """
    import msgspec  # noqa: PLC0415 - help must be there at once

    from ctxgc.cli.lab_explain_text import draw  # noqa: PLC0415
    from ctxgc.economics import price_sheet  # noqa: PLC0415
    from ctxgc.lab.choosing import run_called  # noqa: PLC0415
    from ctxgc.lab.experiment import Experiment  # noqa: PLC0415
    from ctxgc.lab.explain import explain as explained  # noqa: PLC0415
    from ctxgc.lab.policies import policy  # noqa: PLC0415
    from ctxgc.lab.regimes import parse_regime  # noqa: PLC0415

    # The alarms of a replayed session are not about anything that happens now.
    logging.getLogger("ctxgc").addHandler(logging.NullHandler())
    check_set(data, set_name)
    with words_of_call():
        chosen, regime = policy(policy_name), parse_regime(regime_name)
        sheet = price_sheet(sheet_name)
    runs = Experiment(policies=(), data=data, set_name=set_name, least_tokens=0).runs()
    found = explained(chosen, run_called(run, runs), step, regime, sheet)
    if as_json:
        write_json(msgspec.to_builtins(found))
    elif not quiet:
        draw(found, most=None if show_all else 20)
