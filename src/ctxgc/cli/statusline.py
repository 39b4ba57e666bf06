"""`ctxgc statusline`: what Claude Code shows below its prompt."""

from __future__ import annotations

import sys

import click


@click.command(
    epilog="Claude Code sends JSON on standard input; `ctxgc install claude-code` sets it up."
)
def statusline() -> None:
    """Print zone, tokens and share of the context window in one line."""
    from ctxgc.agents.hook import main  # noqa: PLC0415 (help needs nothing of it)

    sys.exit(main(["status-line"]))
