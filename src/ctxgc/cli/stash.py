"""`ctxgc stash`: what left the view, listed, found, shown, carried away and collected."""

from __future__ import annotations

import click

from ctxgc.cli.stash_gc import gc
from ctxgc.cli.stash_look import list_, search, show
from ctxgc.cli.stash_move import export, import_, migrate


@click.group()
def stash() -> None:
    """Look into stores, carry sessions from one to another, and collect the stash.

    A store is named by --store, else by CTXGC_STORE, else it is the file
    artifacts/context_stash.json. Errors end with exit code 1 and one line that says what to do next.
    """


for command in (list_, search, show, export, import_, migrate, gc):
    stash.add_command(command)
