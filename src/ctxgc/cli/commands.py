"""The table of all commands, and what help says around it; nothing here needs a package."""

from __future__ import annotations

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

ABOUT = "Garbage collection for the context of LLM agents."
QUIET_HELP = "Write no results; the exit code tells."
EXIT_CODES = """\
Exit codes: 0 done; 1 an error, or something was found that is not as it should be;
2 a wrong call. Errors are one line that says what to do next. NO_COLOR turns colours off."""
MORE = (
    "Each command has its own --help, with examples. `ctxgc completion SHELL` completes them all."
)
