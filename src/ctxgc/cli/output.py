"""What the commands write: text for people, JSON for programs, and errors in one line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TypeVar

import click

from ctxgc.errors import ConfigError, CtxgcError, InputError

# -- Files that a command writes when it is done


class OutputFile(click.Path):
    """The path of a file to write, checked before the command does any work."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(dir_okay=False, allow_dash=allow_dash, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; fail if its folder is missing or not writable."""
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


# -- Results and errors


F = TypeVar("F", bound=Callable[..., Any])

FOUND_PROBLEMS = 1
BAD_USAGE = 2
_PREVIEW = 72
_AGES = ((86_400, "d"), (3_600, "h"), (60, "m"))
_UNITS = ("B", "KB", "MB", "GB")

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
    """An error of ctxgc on the command line: one line, with the next step."""

    exit_code = FOUND_PROBLEMS

    def __init__(self, error: CtxgcError, *, as_json: bool) -> None:
        super().__init__(error.message)
        self._error = error
        self._as_json = as_json

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the error: JSON to standard output, text to standard error."""
        if self._as_json:
            write_json(self._error.to_dict())
            return
        following = f" (next: {self._error.hint})" if self._error.hint else ""
        line = " ".join(f"{self.message}{following}".split())
        click.echo(f"{paint('error:', 'red')} {line}", file=file, err=file is None)


class BadCallError(CliError):
    """A usage error about an unknown name, with all known names."""

    exit_code = BAD_USAGE

    def __init__(self, error: CtxgcError, *, as_json: bool) -> None:
        known = error.details.get("known", ())
        listed = f"known: {', '.join(known)}" if known else ""
        if listed not in error.hint:
            error.hint = f"{error.hint} {listed}"
        super().__init__(error, as_json=as_json)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors about names on the command line into usage errors."""
    try:
        yield
    except (ConfigError, InputError) as error:
        is_json = bool(click.get_current_context().meta.get("ctxgc.json"))
        raise BadCallError(error, as_json=is_json) from error


def output_options(command: F) -> F:
    """Give a command `--json` and `--quiet`, as `as_json` and `quiet`."""
    command = click.option(
        "--quiet", "-q", is_flag=True, callback=_or_global,
        help="Print nothing; use the exit code.",
    )(command)  # fmt: skip
    return click.option(
        "--json", "as_json", is_flag=True, is_eager=True, callback=_note, help="Print JSON."
    )(command)


def write_json(value: Any) -> None:
    """Write a value as indented JSON."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates, which any tool may put out
        text = json.dumps(value, indent=2, default=str)
    click.echo(text)


def write_table(rows: Sequence[Sequence[str]], *, indent: str = "  ") -> None:
    """Write rows with aligned columns; the last column is not padded."""
    columns = range(len(rows[0]) - 1) if rows else ()
    widths = [max(len(row[column]) for row in rows) for column in columns]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo((indent + "  ".join([*cells, row[-1]])).rstrip())


def write_lines(lines: Iterable[Sequence[tuple[str, str]]]) -> None:
    """Write lines of `ctxgc.drawing`; in colour on a terminal."""
    for line in lines:
        click.echo("".join(styled(text, style) for text, style in line).rstrip())


def styled(text: str, style: str) -> str:
    """Return a text in a style of `ctxgc.drawing`, unless NO_COLOR is set."""
    plain = os.environ.get("NO_COLOR") or style not in _COLOURS
    return text if plain else click.style(text, **_COLOURS[style])


def warn(text: str) -> None:
    """Write a warning to standard error."""
    click.echo(f"{paint('warning:', 'yellow')} {text}", err=True)


def write_ok(text: str) -> None:
    """Write that something succeeded."""
    click.echo(f"{paint('ok:', 'green')} {text}")


def paint(text: str, colour: str) -> str:
    """Return the text in a colour, unless NO_COLOR is set; click removes it from pipes and files."""
    return text if os.environ.get("NO_COLOR") else click.style(text, fg=colour)


def _note(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    # The group reads it when the command fails.
    ctx.meta["ctxgc.json"] = value
    return value


def _or_global(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    return value or bool(ctx.meta.get("ctxgc.quiet"))


# -- Texts as lists and tables show them


def count(number: int, thing: str, things: str | None = None) -> str:
    """Return for example `1 session` or `2 sessions`; `things` is an irregular plural."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def preview(text: str, words: Sequence[str] = ()) -> str:
    """Return the first line of a text with one of the words, else its first line that is not blank.

    It is short, masked and safe to print.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    sought = [word.casefold() for word in words]
    named = (line for line in lines if any(word in line.casefold() for word in sought))
    line = next(named, lines[0] if lines else "")
    from ctxgc.session import mask_secrets  # noqa: PLC0415 - help must be there at once

    shown = printable(mask_secrets(line[: _PREVIEW * 4]))
    return shown if len(shown) <= _PREVIEW else f"{shown[: _PREVIEW - 1]}…"


def printable(text: str) -> str:
    """Return a text with its control characters escaped."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def age(moment: object) -> str:
    """Return how long ago a time is, for example `3h`; `-` if it is not a time."""
    try:
        then = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        return "-"
    if not isinstance(then, datetime):
        return "-"
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = max(0, int((datetime.now(UTC) - then).total_seconds()))
    return next(
        (f"{seconds // unit}{name}" for unit, name in _AGES if seconds >= unit), f"{seconds}s"
    )


def highlighted(text: str, words: Sequence[str]) -> str:
    """Return a text with the words in it in colour."""
    sought = "|".join(re.escape(word) for part in words for word in part.split())
    if not sought:
        return text
    return re.sub(sought, lambda found: styled(found[0], "name"), text, flags=re.IGNORECASE)


def size_text(size: float) -> str:
    """Return a number of bytes in the unit that keeps it short."""
    unit = 0
    while size >= 1_000 and unit < len(_UNITS) - 1:
        size, unit = size / 1_000, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if size >= 10 or not unit else f"{size:.1f} {_UNITS[unit]}"
