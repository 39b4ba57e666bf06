"""`ctxgc watch`: a session fills its window while the agent works."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctxgc.cli.output import write_json, write_lines
from ctxgc.cli.session_argument import optional_session_argument
from ctxgc.cli.watch_file import Follower
from ctxgc.cli.watch_frame import Frame, draw

if TYPE_CHECKING:
    from rich.text import Text

_EPILOG = """\b
Examples:
  ctxgc watch                      the newest session of this project
  ctxgc watch 5f8cbb78             by the beginning of its id
  ctxgc watch session.jsonl --once one picture, for scripts

Ctrl-C ends it. Exit codes: 0 ended, 1 an error, 2 a wrong call.
"""


@click.command(short_help="Watch a session fill its window.", epilog=_EPILOG)
@optional_session_argument
@click.option("--once", is_flag=True, help="Draw one picture and end; so does a pipe.")
@click.option("--json", "as_json", is_flag=True, help="With --once: the numbers as JSON.")
@click.option(
    "--interval", type=click.FloatRange(0.1, 60), default=1.0, show_default=True,
    help="Seconds between looks at the file.",
)  # fmt: skip
@click.option("--context-limit", type=click.IntRange(min=1), help="The window in tokens.")
def watch(
    session: Path, once: bool, as_json: bool, interval: float, context_limit: int | None
) -> None:
    """Follow SESSION as its agent writes it: zone, fill over time, the last tools, and garbage.

    The file is only read. If it is cut, replaced or moved away, watching goes on with what is there.
    """
    follower = Follower(session, context_limit)
    follower.look()
    if as_json:
        write_json(follower.frame().to_dict())
    elif once or not _is_seen():
        write_lines(draw(follower.frame(), _width()))
    else:
        _follow(follower, interval)


def _follow(follower: Follower, interval: float) -> None:
    """Draw again and again, until somebody ends it."""
    from rich.console import Console  # noqa: PLC0415 (0.1 s)
    from rich.live import Live  # noqa: PLC0415

    console = Console(highlight=False)
    try:
        with Live(console=console, screen=False, auto_refresh=False) as live:
            while True:
                live.update(_rich(follower.frame()), refresh=True)
                time.sleep(interval)
                follower.look()
    except KeyboardInterrupt:
        return


def _rich(frame: Frame) -> Text:
    from rich.text import Text  # noqa: PLC0415

    from ctxgc.drawing import STYLES  # noqa: PLC0415

    lines = [
        Text.assemble(*((text, STYLES[style]) for text, style in line))
        for line in draw(frame, _width(), shutil.get_terminal_size((100, 24)).lines - 1)
    ]
    return Text("\n").join(lines)


def _is_seen() -> bool:
    return sys.stdout.isatty()


def _width() -> int:
    return min(110, max(50, shutil.get_terminal_size((100, 24)).columns))
