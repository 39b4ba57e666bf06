"""What the commands write: text for people, JSON for programs, and errors in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import click

from ctxgc.errors import ConfigError, CtxgcError, InputError

# -- A file that a command will write when it is done; whether it can is told before it begins


class OutputFile(click.Path):
    """The path of a file to write, in a folder that is there and may be written to."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(dir_okay=False, allow_dash=allow_dash, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; nothing is made, nothing is written."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        folder = path.parent
        if self.allow_dash and str(path) == "-":
            return path
        if not path.name:
            self.fail("the file has no name", param, ctx)
        if not folder.is_dir():
            self.fail(f"there is no folder '{folder}' to write '{path}' to", param, ctx)
        if not os.access(folder, os.W_OK | os.X_OK):
            self.fail(f"the folder '{folder}' may not be written to", param, ctx)
        return path


# -- What the commands write: text for people, JSON for programs, and errors in one line


F = TypeVar("F", bound=Callable[..., Any])

FOUND_PROBLEMS = 1
BAD_USAGE = 2

_COLOURS: dict[str, dict[str, Any]] = {
    "title": {"bold": True},
    "name": {"fg": "cyan", "bold": True},
    "faint": {"fg": "bright_black"},
    "safe": {"fg": "green"},
    "warning": {"fg": "yellow"},
    "danger": {"fg": (255, 135, 0)},
    "critical": {"fg": "red"},
}
"""How a terminal shows the styles of `ctxgc.drawing`."""


class CliError(click.ClickException):
    """An error of ctxgc as the command line shows it: one line, with the next step."""

    exit_code = FOUND_PROBLEMS

    def __init__(self, error: CtxgcError, *, as_json: bool) -> None:
        super().__init__(error.message)
        self._error = error
        self._as_json = as_json

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the error: JSON to where results go, text to where errors go."""
        if self._as_json:
            write_json(self._error.to_dict())
            return
        following = f" (next: {self._error.hint})" if self._error.hint else ""
        line = " ".join(f"{self.message}{following}".split())
        click.echo(f"{paint('error:', 'red')} {line}", file=file, err=file is None)


class BadCallError(CliError):
    """An error about a word of the call, with all words that are known."""

    exit_code = BAD_USAGE

    def __init__(self, error: CtxgcError, *, as_json: bool) -> None:
        known = error.details.get("known", ())
        listed = f"known: {', '.join(known)}" if known else ""
        if listed not in error.hint:
            error.hint = f"{error.hint} {listed}"
        super().__init__(error, as_json=as_json)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Look up words of the call: one that is unknown makes it a wrong call."""
    try:
        yield
    except (ConfigError, InputError) as error:
        is_json = bool(click.get_current_context().meta.get("ctxgc.json"))
        raise BadCallError(error, as_json=is_json) from error


def output_options(command: F) -> F:
    """Give a command `--json` and `--quiet`; it gets `as_json` and `quiet`."""
    command = click.option(
        "--quiet", "-q", is_flag=True, callback=_or_global,
        help="Write nothing; the exit code tells.",
    )(command)  # fmt: skip
    return click.option(
        "--json", "as_json", is_flag=True, is_eager=True, callback=_note, help="Write JSON."
    )(command)


def write_json(value: Any) -> None:
    """Write a value as JSON that people can read too."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates, which any tool may put out
        text = json.dumps(value, indent=2, default=str)
    click.echo(text)


def write_table(rows: Sequence[Sequence[str]], *, indent: str = "  ") -> None:
    """Write rows with their columns aligned; the last column runs free."""
    columns = range(len(rows[0]) - 1) if rows else ()
    widths = [max(len(row[column]) for row in rows) for column in columns]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo((indent + "  ".join([*cells, row[-1]])).rstrip())


def write_lines(lines: Iterable[Sequence[tuple[str, str]]]) -> None:
    """Write what `ctxgc.drawing` drew; colours only where somebody sees them."""
    for line in lines:
        click.echo("".join(styled(text, style) for text, style in line).rstrip())


def styled(text: str, style: str) -> str:
    """Return a text in a style of `ctxgc.drawing`, unless NO_COLOR is set."""
    plain = os.environ.get("NO_COLOR") or style not in _COLOURS
    return text if plain else click.style(text, **_COLOURS[style])


def warn(text: str) -> None:
    """Write a warning to where errors go."""
    click.echo(f"{paint('warning:', 'yellow')} {text}", err=True)


def done(text: str) -> None:
    """Write that something was done."""
    click.echo(f"{paint('ok:', 'green')} {text}")


def paint(text: str, colour: str) -> str:
    """Return the text in a colour, unless NO_COLOR is set; click strips it where nobody sees it."""
    return text if os.environ.get("NO_COLOR") else click.style(text, fg=colour)


def _note(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    # Kept where the group finds it when the command fails.
    ctx.meta["ctxgc.json"] = value
    return value


def _or_global(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    return value or bool(ctx.meta.get("ctxgc.quiet"))
