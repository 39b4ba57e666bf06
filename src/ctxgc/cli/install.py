"""`ctxgc install`, `uninstall`, `hook`, `statusline` and `plugin-folder`: ctxgc in a coding agent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ctxgc.agents import AGENTS
from ctxgc.cli.output import paint, write_text

# -- hook


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="Events: post-tool-use, pre-compact, session-start, status-line. Options: --agent, --home, "
    "--store, --recall. Installed hooks call python -P -m ctxgc.agents.hook, which starts faster.",
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="EVENT [OPTIONS]")
def hook(words: tuple[str, ...]) -> None:
    """Answer a hook of a coding agent: JSON on standard input, the answer on standard output.

    It never fails: if it cannot do anything, it prints nothing and logs why.
    """
    from ctxgc.agents import run_hook  # noqa: PLC0415

    sys.exit(run_hook(list(words)))


if TYPE_CHECKING:
    from ctxgc.agents import FileEdit

F = TypeVar("F", bound=Callable[..., Any])

NEXT = {
    "claude-code": "start a new session; /mcp and /hooks show what was added",
    "codex": "start a new session, and accept the hooks in /hooks",
    "cursor": "open the settings of Cursor, page MCP, and switch ctxgc on",
    "vscode": "open the agent view and accept the ctxgc server",
}


def _agent_arguments(command: F) -> F:
    """Give a command the agent and its scope."""
    options = (
        click.argument("agent", type=click.Choice(AGENTS)),
        click.option("--user", "scope", flag_value="user", default="user", help="All projects (default)."),
        click.option("--project", "scope", flag_value="project", help="This project only."),
        click.option("--dry-run", is_flag=True, help="Show the changes without making them."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command(
    epilog="Examples: `ctxgc install claude-code`, `ctxgc install codex --project --dry-run`. "
    "`ctxgc uninstall AGENT` restores everything."
)
@_agent_arguments
@click.option(
    "--store", metavar="URL", help="Store for stashed outputs: json:PATH, sqlite:PATH ..."
)
def install(agent: str, scope: Any, dry_run: bool, store: str | None) -> None:
    """Add ctxgc to the configuration of a coding agent: the MCP server, hooks and a status line.

    Everything else in its files is kept. Installing twice changes nothing.
    """
    from ctxgc.agents import install as put  # noqa: PLC0415

    changes = put(agent, scope=scope, store=store, dry_run=dry_run)
    _write_changes(changes, dry_run=dry_run)
    if not changes:
        click.echo(f"{agent}: already installed, nothing to do")
    elif not dry_run:
        click.echo(f"next: {NEXT[agent]}")


def _write_changes(changes: Sequence[FileEdit], *, dry_run: bool) -> None:
    """Write which files change; a dry run shows how."""
    for change in changes:
        said = f"would {change.verb}" if dry_run else f"{change.verb}d".replace("eed", "ed")
        click.echo(f"{paint(said, 'cyan')} {change.path}")
        for name in change.left_alone:
            write_text(f"left alone: {name} is set to something of yours, and stays")
        if dry_run:
            click.echo(change.diff())


# -- plugin-folder


@click.command(
    epilog="Example: `ctxgc plugin-folder ./ctxgc-plugin && claude --plugin-dir ./ctxgc-plugin`."
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--store", metavar="URL", help="Store for stashed outputs: json:PATH, sqlite:PATH ..."
)
def plugin_folder(folder: Path, store: str | None) -> None:
    """Write a plugin for Claude Code into a folder.

    It holds what `ctxgc install claude-code` would set up, apart from the status line.
    """
    from ctxgc.agents import write_plugin_folder  # noqa: PLC0415

    for path in write_plugin_folder(folder, store=store):
        click.echo(str(path))


# -- statusline


@click.command(
    epilog="Claude Code sends JSON on standard input; `ctxgc install claude-code` sets it up."
)
def statusline() -> None:
    """Print the zone, the tokens and the share of the context window in one line."""
    from ctxgc.agents import run_hook  # noqa: PLC0415

    sys.exit(run_hook(["status-line"]))


# -- uninstall


@click.command(
    epilog="Example: `ctxgc uninstall claude-code --dry-run` shows what would be removed."
)
@_agent_arguments
@click.option(
    "--delete-stash", is_flag=True, help="Delete the stash too, if no other agent uses it."
)
def uninstall(agent: str, scope: Any, dry_run: bool, delete_stash: bool) -> None:
    """Remove ctxgc from the configuration of a coding agent.

    Files that were not changed since are restored byte for byte; from others only our entries are
    removed. What was stashed stays, since pruned sessions lead to it; --delete-stash deletes it.
    """
    from ctxgc.agents import uninstall as take_out  # noqa: PLC0415
    from ctxgc.agents import unused_stash  # noqa: PLC0415

    stash = unused_stash(agent, scope=scope)
    changes = take_out(agent, scope=scope, delete_stash=delete_stash, dry_run=dry_run)
    _write_changes(changes, dry_run=dry_run)
    if not changes:
        click.echo(f"{agent}: not installed, nothing to do")
    if stash is not None and delete_stash:
        said = "would remove" if dry_run else "removed"
        click.echo(f"{paint(said, 'cyan')} {stash}, with everything that was stashed")
    elif stash is not None:
        click.echo(
            f"{paint('kept', 'cyan')} {stash} with what was stashed (--delete-stash deletes it)"
        )
