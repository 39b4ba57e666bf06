"""Where `ctxgc` starts: it writes help at once and leaves the rest to the group of commands."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

# -- The commands, and the texts of `ctxgc --help`; nothing here needs a package


COMMANDS: dict[str, tuple[str, str]] = {
    "analyze": (
        "ctxgc.cli.analyze:analyze",
        "Show where a session's tokens went, and what was garbage.",
    ),
    "sessions": (
        "ctxgc.cli.sessions:sessions",
        "List the sessions of coding agents on this machine.",
    ),
    "cost": ("ctxgc.cli.cost:cost", "Sum up what sessions cost, in dollars."),
    "history": ("ctxgc.cli.history:history", "Show what compactions removed from a session."),
    "trace": ("ctxgc.cli.history:trace", "Show where a phrase in a session came from."),
    "check": ("ctxgc.cli.scan:check", "Fail a CI job on budgets of a session."),
    "scan": ("ctxgc.cli.scan:scan", "Find secrets in the transcripts of agents."),
    "convert": (
        "ctxgc.cli.convert:convert",
        "Write a session so that another agent resumes it.",
    ),
    "config": ("ctxgc.cli.config:config", "Show, check and describe the configuration."),
    "demo": ("ctxgc.cli.demo:demo", "Watch a session fill its window, and a collection run."),
    "stash": ("ctxgc.cli.stash:stash", "Inspect stores, copy sessions, collect the stash."),
    "lab": ("ctxgc.cli.lab:lab", "Measure pruning policies on recorded runs."),
    "hook": ("ctxgc.cli.install:hook", "Answer a hook of a coding agent."),
    "install": ("ctxgc.cli.install:install", "Install ctxgc into a coding agent."),
    "plugin-folder": ("ctxgc.cli.install:plugin_folder", "Write a Claude Code plugin."),
    "statusline": ("ctxgc.cli.install:statusline", "Print the status line of Claude Code."),
    "uninstall": ("ctxgc.cli.install:uninstall", "Remove ctxgc from a coding agent."),
    "mcp": ("ctxgc.cli.mcp:mcp", "Serve context management to an agent (MCP)."),
    "serve": ("ctxgc.cli.serve:serve", "Serve the proxy that agents send their requests to."),
    "dashboard": (
        "ctxgc.cli.dashboard:dashboard",
        "Look at sessions in the browser, request by request.",
    ),
    "wrap": ("ctxgc.cli.wrap:wrap", "Run an agent through a proxy, and say what was saved."),
    "prune": ("ctxgc.cli.prune:prune", "Collect the garbage of an agent's session file."),
    "unbrick": ("ctxgc.cli.doctor:unbrick", "Repair a session that its provider refuses."),
    "undo": ("ctxgc.cli.prune:undo", "Restore a session file that ctxgc changed."),
    "diff": ("ctxgc.cli.diff:diff", "Show what left, came and changed between two histories."),
    "show": ("ctxgc.cli.show:show", "Show a segment, and why it is where it is."),
    "search": ("ctxgc.cli.stash:search", "Search the text of sessions, stashed or not."),
    "checkpoint": (
        "ctxgc.cli.checkpoint:checkpoint",
        "List, make, verify and restore checkpoints.",
    ),
    "doctor": ("ctxgc.cli.doctor:doctor", "Check histories, stores, configuration, installation."),
    "watch": ("ctxgc.cli.watch:watch", "Watch a session fill its window as the agent works."),
    "completion": (
        "ctxgc.cli.group:completion",
        "Print the shell completion script.",
    ),
}
"""Name -> (where the command is, what help says about it). A new command is one more line."""

ABOUT = "Garbage collection for the context of LLM agents."
QUIET_HELP = "Print nothing; use the exit code."
EXIT_CODES = """\
Exit codes: 0 done; 1 an error, or a check found problems; 2 usage error.
Errors are one line that says what to do next. NO_COLOR turns colours off."""
MORE = (
    "Each command has its own --help, with examples. `ctxgc completion SHELL` sets up completion."
)


# -- Running


def load_main() -> Callable[..., object]:
    """Return the group of commands; without click, a function that says what to install, and fails."""
    try:
        from ctxgc.cli.group import main  # noqa: PLC0415 - it costs four times an empty program
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        return _say_what_to_install
    return main


def _say_what_to_install(**_: object) -> NoReturn:
    print(
        "error: the command line needs click (next: pip install 'ctxgc[cli]')",
        file=sys.stderr,
    )
    sys.exit(1)


_WIDTH = 78
_OPTIONS = (
    ("--version", "Show the version and exit."),
    ("-q, --quiet", QUIET_HELP),
    ("-h, --help", "Show this message and exit."),
)


def run() -> None:
    """Run the command line."""
    if sys.argv[1:] in (["--help"], ["-h"]) and _is_wide():
        print(help_text())
        return
    load_main()(prog_name="ctxgc")


def help_text() -> str:
    """Return what `ctxgc --help` writes, as click would lay it out on 80 columns."""
    commands = [(name, COMMANDS[name][1]) for name in sorted(COMMANDS)]
    parts = [
        "Usage: ctxgc [OPTIONS] COMMAND [ARGS]...\n",
        f"  {ABOUT}\n",
        "Options:",
        *_listed(_OPTIONS),
        "\nCommands:",
        *_listed(commands),
        "",
        *(f"  {line}" for line in EXIT_CODES.splitlines()),
        "",
        *(f"  {line}" for line in _wrapped(MORE, _WIDTH - 2)),
    ]
    return "\n".join(parts)


def _listed(rows: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> list[str]:
    width = max(len(name) for name, _ in rows) + 4
    lines = []
    for name, said in rows:
        first, *rest = _wrapped(said, _WIDTH - width)
        lines.append(f"  {name}".ljust(width) + first)
        lines += [" " * width + line for line in rest]
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _is_wide() -> bool:
    """Return whether 80 columns fit; assume so where the width is unknown."""
    if "COLUMNS" in os.environ or "_CTXGC_COMPLETE" in os.environ:
        return False
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns > _WIDTH + 1
    except (AttributeError, OSError, ValueError):
        return True
