"""The group of all commands; each is imported when it is called, so that help is quick."""

from __future__ import annotations

import errno
import importlib
from difflib import get_close_matches
from typing import Any

import click
from click.shell_completion import get_completion_class

from ctxgc._version import __version__
from ctxgc.cli.output import BadCallError, CliError
from ctxgc.cli.start import ABOUT, COMMANDS, EXIT_CODES, MORE, QUIET_HELP
from ctxgc.errors import CtxgcError, InputError

# -- ctxgc completion


SHELLS = ("bash", "zsh", "fish")
_EPILOG = """\b
Examples:
  ctxgc completion bash >> ~/.bashrc
  ctxgc completion zsh >> ~/.zshrc
  ctxgc completion fish > ~/.config/fish/completions/ctxgc.fish

Exit codes: 0 done, 2 usage error.
"""


@click.command(short_help="Print the shell completion script.", epilog=_EPILOG)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and their choices in SHELL.

    It asks ctxgc itself, so it stays right after updates.
    """
    kind = get_completion_class(shell)
    if kind is None:  # click knows these three
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(ctx.find_root().command, {}, "ctxgc", "_CTXGC_COMPLETE").source())


# -- The group


__all__ = ["COMMANDS", "LazyGroup", "main"]


class LazyGroup(click.Group):
    """Knows its commands by name and imports them on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported now if need be."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown name gets the nearest one as a hint."""
        near = get_close_matches(args[0], self.list_commands(ctx), 1)
        if args[0] not in self.list_commands(ctx) and near:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing any."""
        rows = [(name, COMMANDS[name][1]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the options of the group; a mistake in them becomes one line."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            raise _bad_call(error) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a CtxgcError becomes one line, never a traceback."""
        try:
            return super().invoke(ctx)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            raise _bad_call(error) from error
        except CtxgcError as error:
            raise CliError(error, as_json=bool(ctx.meta.get("ctxgc.json"))) from error
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of our output has closed it
                raise
            # Standard output itself may have failed: never write this there.
            raise CliError(_of_system(error), as_json=False) from error


def _bad_call(error: click.UsageError) -> BadCallError:
    """Return an error of click in the form of ours: one line that says what to do next."""
    said = error.format_message().rstrip(".")
    path = error.ctx.command_path.split()[1:] if error.ctx is not None else []
    called = " ".join(["ctxgc", *path])
    is_json = error.ctx is not None and bool(error.ctx.meta.get("ctxgc.json"))
    mistake = InputError(f"{said[:1].lower()}{said[1:]}", hint=f"{called} --help")
    return BadCallError(mistake, as_json=is_json)


def _of_system(error: OSError) -> CtxgcError:
    where = f"{error.filename}: " if error.filename else ""
    said = error.strerror or str(error)
    return CtxgcError(f"{where}{said}", hint="check the path and its permissions, and try again")


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"\b\n{EXIT_CODES}\n\n{MORE}",
    help=ABOUT,
)
@click.version_option(__version__, prog_name="ctxgc")
@click.option("--quiet", "-q", is_flag=True, help=QUIET_HELP)
@click.pass_context
def main(ctx: click.Context, quiet: bool) -> None:
    """Keep the options that hold for every command."""
    ctx.meta["ctxgc.quiet"] = quiet
