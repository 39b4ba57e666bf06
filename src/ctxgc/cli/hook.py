"""`ctxgc hook EVENT`: the same as `python -P -m ctxgc.agents.hook`, for trying a hook by hand."""

from __future__ import annotations

import sys

import click


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="Events: post-tool-use, pre-compact, session-start, status-line. Options: --agent, --home, "
    "--store, --recall. Installed hooks call python -P -m ctxgc.agents.hook, which starts faster.",
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="EVENT [OPTIONS]")
def hook(words: tuple[str, ...]) -> None:
    """Answer a hook of a coding agent: JSON on standard input, the answer on standard output.

    It never fails: where it can do nothing, it prints nothing and says why in its log.
    """
    from ctxgc.agents.hook import main  # noqa: PLC0415 (help needs nothing of it)

    sys.exit(main(list(words)))
