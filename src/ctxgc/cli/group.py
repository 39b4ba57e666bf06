"""The group of all commands. A command is imported when it is called, so that help is there at once."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from typing import Any

import click

from ctxgc._version import __version__
from ctxgc.cli.report import CliError
from ctxgc.errors import CtxgcError

COMMANDS: dict[str, tuple[str, str]] = {
    "analyze": (
        "ctxgc.cli.analyze:analyze",
        "Show where a session's tokens went, and what was garbage.",
    ),
    "sessions": (
        "ctxgc.cli.sessions:sessions",
        "List the sessions of coding agents on this machine.",
    ),
    "config": ("ctxgc.cli.config:config", "Show, check and describe the configuration."),
    "demo": ("ctxgc.cli.demo:demo", "Watch a session fill its window, and a collection run."),
    "stash": ("ctxgc.cli.stash:stash", "Look into stores, move sessions, collect the stash."),
    "lab": ("ctxgc.cli.lab:lab", "Measure pruning policies on recorded runs."),
    "hook": ("ctxgc.cli.hook:hook", "Answer a hook of a coding agent."),
    "install": ("ctxgc.cli.install:install", "Put ctxgc into a coding agent."),
    "plugin-folder": ("ctxgc.cli.plugin_folder:plugin_folder", "Write a Claude Code plugin."),
    "statusline": ("ctxgc.cli.statusline:statusline", "Print the status line of Claude Code."),
    "uninstall": ("ctxgc.cli.uninstall:uninstall", "Take ctxgc out of a coding agent again."),
    "mcp": ("ctxgc.cli.mcp:mcp", "Serve context management to an agent (MCP)."),
    "prune": ("ctxgc.cli.prune:prune", "Collect the garbage of an agent's session file."),
    "undo": ("ctxgc.cli.undo:undo", "Put a session file back that was pruned in place."),
    "diff": ("ctxgc.cli.diff:diff", "Show what left, came and changed between two histories."),
    "show": ("ctxgc.cli.show:show", "Show a segment, and why it is where it is."),
    "search": ("ctxgc.cli.stash_look:search", "Find what was said, stashed or not."),
    "checkpoint": (
        "ctxgc.cli.checkpoint:checkpoint",
        "List, make, verify and restore checkpoints.",
    ),
    "doctor": ("ctxgc.cli.doctor:doctor", "Check histories, stores, configuration, installation."),
    "watch": ("ctxgc.cli.watch:watch", "Watch a session fill its window as the agent works."),
    "completion": (
        "ctxgc.cli.completion:completion",
        "Print what makes a shell complete commands.",
    ),
}
"""Name -> (where the command is, what help says about it). A new command is one more line."""


class LazyGroup(click.Group):
    """Knows its commands by name and imports them on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported if it was not yet."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was called; a wrong name gets the nearest one as a hint."""
        near = get_close_matches(args[0], self.list_commands(ctx), 1)
        if args[0] not in self.list_commands(ctx) and near:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing any."""
        rows = [(name, COMMANDS[name][1]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an error of ours becomes one line, never a traceback."""
        try:
            return super().invoke(ctx)
        except CtxgcError as error:
            raise CliError(error, as_json=bool(ctx.meta.get("ctxgc.json"))) from error


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Exit codes: 0 done; 1 an error, or something was found that is not as it should be;
2 a wrong call. Errors are one line that says what to do next. NO_COLOR turns colours off.

Each command has its own --help, with examples. `ctxgc completion SHELL` completes them all.""",
)
@click.version_option(__version__, prog_name="ctxgc")
@click.option("--quiet", "-q", is_flag=True, help="Write no results; the exit code tells.")
@click.pass_context
def main(ctx: click.Context, quiet: bool) -> None:
    """Garbage collection for the context of LLM agents."""
    ctx.meta["ctxgc.quiet"] = quiet
