"""`ctxgc lab`: replay recorded runs through pruning policies; no model is asked."""

from __future__ import annotations

import click

from ctxgc.cli.lab_ablate import ablate
from ctxgc.cli.lab_explain import explain
from ctxgc.cli.lab_fit import fit
from ctxgc.cli.lab_peers import peers
from ctxgc.cli.lab_policies import policies
from ctxgc.cli.lab_run import run


@click.group()
def lab() -> None:
    """Replay recorded agent runs through pruning policies, priced and judged without a model.

    What it measures is a proxy: whether what the agent used next still stood in the view. It does not
    measure whether a task succeeds.
    """


for command in (run, explain, fit, ablate, policies, peers):
    lab.add_command(command)
