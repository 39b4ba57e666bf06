"""`ctxgc uninstall AGENT`: the agent's files as they were, byte for byte."""

from __future__ import annotations

from typing import Any

import click

from ctxgc.cli.install import agent_arguments, write_changes
from ctxgc.cli.report import paint


@click.command(epilog="Example: `ctxgc uninstall claude-code --dry-run` shows what would go.")
@agent_arguments
@click.option("--keep-stash", is_flag=True, help="Keep what was moved out, and the log.")
def uninstall(agent: str, scope: Any, dry_run: bool, keep_stash: bool) -> None:
    """Take ctxgc out of the configuration of a coding agent again.

    Files that nobody changed since are what they were before, byte for byte; from others only our entries
    go. With the last agent the stash of the installation goes too, unless you keep it.
    """
    from ctxgc.agents import stash_that_goes  # noqa: PLC0415 (help needs nothing of it)
    from ctxgc.agents import uninstall as take_out  # noqa: PLC0415

    stash = None if keep_stash else stash_that_goes(agent, scope=scope)
    changes = take_out(agent, scope=scope, keep_stash=keep_stash, dry_run=dry_run)
    write_changes(changes, dry_run=dry_run)
    if stash is not None:
        said = "would remove" if dry_run else "removed"
        hint = " (--keep-stash keeps it)" if dry_run else ""
        click.echo(f"{paint(said, 'cyan')} {stash}: all that was moved out{hint}")
    elif not changes:
        click.echo(f"{agent} does not have it: nothing to do")
