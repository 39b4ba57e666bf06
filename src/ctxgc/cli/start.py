"""Where `ctxgc` starts: help is written at once, everything else by the group of commands."""

from __future__ import annotations

import os
import sys

from ctxgc.cli.commands import ABOUT, COMMANDS, EXIT_CODES, MORE, QUIET_HELP

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
    from ctxgc.cli import main  # noqa: PLC0415 - it costs four times an empty program

    main(prog_name="ctxgc")


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
    """Tell whether lines of 80 columns fit; where nobody measures, they do."""
    if "COLUMNS" in os.environ or "_CTXGC_COMPLETE" in os.environ:
        return False
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns > _WIDTH + 1
    except (AttributeError, OSError, ValueError):
        return True
