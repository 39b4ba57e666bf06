"""`ctxgc install AGENT`: the MCP server, and where the agent has them hooks and a status line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ctxgc.agents.settings import AGENTS
from ctxgc.cli.report import paint

if TYPE_CHECKING:
    from ctxgc.agents import Change

F = TypeVar("F", bound=Callable[..., Any])

NEXT = {
    "claude-code": "start a new session; /mcp and /hooks show what was added",
    "codex": "start a new session, and accept the hooks in /hooks",
    "cursor": "open the settings of Cursor, page MCP, and switch ctxgc on",
    "vscode": "open the agent view and accept the ctxgc server",
}


def agent_arguments(command: F) -> F:
    """Give a command the agent and its scope."""
    options = (
        click.argument("agent", type=click.Choice(AGENTS)),
        click.option("--user", "scope", flag_value="user", default="user", help="Everywhere (default)."),
        click.option("--project", "scope", flag_value="project", help="In this project only."),
        click.option("--dry-run", is_flag=True, help="Show the changes, and make none."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command(
    epilog="Examples: `ctxgc install claude-code`, `ctxgc install codex --project --dry-run`. "
    "`ctxgc uninstall AGENT` leaves everything as it was."
)
@agent_arguments
@click.option(
    "--store", metavar="URL", help="Where outputs are stashed: json:PATH, sqlite:PATH ..."
)
def install(agent: str, scope: Any, dry_run: bool, store: str | None) -> None:
    """Put ctxgc into the configuration of a coding agent.

    Everything else in its files stays as it is. Installing twice changes nothing.
    """
    from ctxgc.agents import install as put  # noqa: PLC0415 (help needs nothing of it)

    changes = put(agent, scope=scope, store=store, dry_run=dry_run)
    write_changes(changes, dry_run=dry_run)
    if not changes:
        click.echo(f"{agent} has it already: nothing to do")
    elif not dry_run:
        click.echo(f"next: {NEXT[agent]}")


def write_changes(changes: Sequence[Change], *, dry_run: bool) -> None:
    """Tell which files change; a dry run shows how."""
    for change in changes:
        said = f"would {change.verb}" if dry_run else f"{change.verb}d".replace("eed", "ed")
        click.echo(f"{paint(said, 'cyan')} {change.path}")
        if dry_run:
            click.echo(change.diff())
