"""What the commands write: text for people, JSON for programs, and errors in one line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from ctxgc.errors import ConfigError, CtxgcError, InputError

if TYPE_CHECKING:
    from ctxgc.drawing import Column, Entry, Line

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
_SHORT = 8
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UNUSUAL = re.compile(r"[^\n -~]")
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
        click.echo(f"{paint('error:', 'red')} {shown(line)}", file=file, err=file is None)


class BadCallError(CliError):
    """A usage error about an unknown name, with all known names."""

    exit_code = BAD_USAGE

    def __init__(self, error: CtxgcError, *, as_json: bool) -> None:
        known = error.details.get("known", ())
        listed = f"known: {', '.join(known)}" if known else ""
        if listed not in error.hint:
            error.hint = f"{error.hint} {listed}".strip()
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


def secrets_option(command: F) -> F:
    """Give a command `--show-secrets`, for what it writes as JSON."""
    return click.option(
        "--show-secrets", is_flag=True, help="Do not mask keys and passwords in JSON."
    )(command)


def write_json(value: Any, *, secrets: bool = False) -> None:
    """Write a value as indented JSON that any terminal may show: what is not printable is escaped.

    Args:
        value: what to write.
        secrets: write keys and passwords as they are; by default they are masked.
    """
    from ctxgc.session import masked_data  # noqa: PLC0415 - help must be there at once

    data = value if secrets else masked_data(value)
    text = json.dumps(data, ensure_ascii=False, indent=2, default=str)
    click.echo(_UNUSUAL.sub(_escaped, text))


def _escaped(found: re.Match[str]) -> str:
    letter = found[0]
    if letter.isprintable():
        return letter
    # json.dumps leaves DEL as it is.
    return "\\u007f" if letter == "\x7f" else json.dumps(letter)[1:-1]


_HANGING = "    "


def write_table(
    columns: Sequence[Column | str],
    rows: Sequence[Sequence[Entry]],
    *,
    indent: str = "  ",
    keys: int = 1,
) -> None:
    """Write a table that fits the terminal, as `ctxgc.drawing.terminal_table` lays it out."""
    from ctxgc.drawing import terminal_table, terminal_width  # noqa: PLC0415 - help must be there at once

    write_lines(terminal_table(columns, rows, terminal_width(), indent=indent, keys=keys))


def write_facts(facts: Iterable[tuple[str, str]], *, indent: str = "") -> None:
    """Write names with what is known about each, wrapped where it is long."""
    from ctxgc.drawing import Column  # noqa: PLC0415

    write_table((Column(), Column(right=False, least=20, keep="all")), list(facts), indent=indent)


def write_text(text: str, style: str = "", *, indent: str = "  ") -> None:
    """Write a text in as many lines as it needs to fit the terminal."""
    from ctxgc.drawing import plain, terminal_width, wrapped  # noqa: PLC0415

    room = terminal_width() - len(indent)
    write_lines(plain(f"{indent}{line}", style) for line in wrapped(text, room))


def write_command(command: str) -> None:
    """Write a command to copy: on one line, however long."""
    write_lines([[("  $ ", "faint"), (printable(command), "name")]])


def write_lines(lines: Iterable[Sequence[tuple[str, str]]]) -> None:
    """Write lines of `ctxgc.drawing`; in colour on a terminal."""
    for line in lines:
        click.echo("".join(styled(text, style) for text, style in line).rstrip())


def styled(text: str, style: str) -> str:
    """Return a text in a style of `ctxgc.drawing`, unless NO_COLOR is set."""
    plain, safe = os.environ.get("NO_COLOR") or style not in _COLOURS, printable(text)
    return safe if plain else click.style(safe, **_COLOURS[style])


def warn(text: str) -> None:
    """Write a warning to standard error."""
    click.echo(f"{paint('warning:', 'yellow')} {shown(text)}", err=True)


def write_ok(text: str) -> None:
    """Write that something succeeded."""
    write_verdict("ok", "green", text)


def write_verdict(level: str, colour: str, text: str) -> None:
    """Write a sentence after its level; a path behind one word stays on its line, however long."""
    from ctxgc.drawing import terminal_width, wrapped  # noqa: PLC0415 - help must be there at once

    said, safe = f"{level}:", shown(text)
    room = terminal_width() - len(_HANGING)
    lines = wrapped(f"{said} {safe}", room) if len(safe.split()) > 2 else [f"{said} {safe}"]
    click.echo(paint(said, colour) + lines[0].removeprefix(said))
    for line in lines[1:]:
        click.echo(f"{_HANGING}{line}")


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


def preview(text: str, words: Sequence[str] = ()) -> str:
    """Return the first line of a text with one of the words, else its first line that is not blank.

    It is short, masked and safe to print.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    sought = [word.casefold() for word in words]
    named = (line for line in lines if any(word in line.casefold() for word in sought))
    line = next(named, lines[0] if lines else "")
    safe = shown(line[: _PREVIEW * 4])
    return safe if len(safe) <= _PREVIEW else f"{safe[: _PREVIEW - 1]}…"


def short_id(session_id: str) -> str:
    """Return the beginning of a UUID, which is enough for commands; other ids are as they are."""
    return session_id[:_SHORT] if _UUID.fullmatch(session_id) else session_id


def shown(text: str) -> str:
    """Return a text as a terminal may show it: keys and passwords masked, control characters escaped."""
    return printable(mask(text))


def mask(text: str) -> str:
    """Return a text without keys, and without the passwords of addresses."""
    from ctxgc.session import mask_secrets, without_passwords  # noqa: PLC0415 - help must be there at once

    return mask_secrets(without_passwords(text))


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


def highlighted(text: str, words: Sequence[str]) -> Line:
    """Return a text with the words in it in another style."""
    sought = "|".join(re.escape(word) for part in words for word in part.split())
    if not sought:
        return [(text, "")]
    parts = re.split(f"({sought})", text, flags=re.IGNORECASE)
    return [(part, "name" if number % 2 else "") for number, part in enumerate(parts)]


def size_text(size: float) -> str:
    """Return a number of bytes in the unit that keeps it short."""
    unit = 0
    while size >= 1_000 and unit < len(_UNITS) - 1:
        size, unit = size / 1_000, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if size >= 10 or not unit else f"{size:.1f} {_UNITS[unit]}"
