"""`ctxgc completion`: the commands and options in the shell's own completion."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
_EPILOG = """\b
Examples:
  ctxgc completion bash >> ~/.bashrc
  ctxgc completion zsh >> ~/.zshrc
  ctxgc completion fish > ~/.config/fish/completions/ctxgc.fish

Exit codes: 0 printed, 2 a wrong call.
"""


@click.command(short_help="Print what makes a shell complete commands.", epilog=_EPILOG)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the code that makes SHELL complete commands, options and their choices.

    It asks ctxgc itself, so that it is right after every update.
    """
    kind = get_completion_class(shell)
    if kind is None:  # click knows these three
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(ctx.find_root().command, {}, "ctxgc", "_CTXGC_COMPLETE").source())
