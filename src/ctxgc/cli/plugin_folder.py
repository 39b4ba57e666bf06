"""`ctxgc plugin-folder DIR`: a Claude Code plugin with manifest, server, hooks and commands."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    epilog="Example: `ctxgc plugin-folder ./ctxgc-plugin && claude --plugin-dir ./ctxgc-plugin`."
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--store", metavar="URL", help="Where outputs are stashed: json:PATH, sqlite:PATH ..."
)
def plugin_folder(folder: Path, store: str | None) -> None:
    """Write a plugin for Claude Code into a folder.

    It holds what `ctxgc install claude-code` would set up, apart from the status line.
    """
    from ctxgc.agents import write_plugin_folder  # noqa: PLC0415 (help needs nothing of it)

    for path in write_plugin_folder(folder, store=store):
        click.echo(str(path))
