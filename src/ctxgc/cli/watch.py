"""`ctxgc watch`: see a session fill its window while the agent works."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctxgc.cli.output import printable, write_json, write_lines
from ctxgc.cli.session_argument import optional_session_argument
from ctxgc.drawing import (
    Line,
    bar,
    chart,
    count,
    cut,
    plain,
    terminal_bars,
    terminal_width,
    wrapped,
)
from ctxgc.insight import LiveWindow, SessionFollower, ToolSample, age_text
from ctxgc.session import mask_secrets

if TYPE_CHECKING:
    from rich.text import Text

_MARKS = {70: "warning", 90: "hard limit"}
_BAR = 40
_TOOLS_HEAD = 2
_EPILOG = """\b
Examples:
  ctxgc watch                      the newest session of this project
  ctxgc watch 5f8cbb78             by the beginning of its id
  ctxgc watch session.jsonl --once one frame, for scripts

Ctrl-C ends it. Exit codes: 0 ended, 1 an error, 2 usage error.
"""


@click.command(short_help="Watch a session fill its window.", epilog=_EPILOG)
@optional_session_argument
@click.option("--once", is_flag=True, help="Print one frame and exit; the default in a pipe.")
@click.option("--json", "as_json", is_flag=True, help="Print one frame as JSON.")
@click.option(
    "--interval", type=click.FloatRange(0.1, 60), default=1.0, show_default=True,
    help="Seconds between reads of the file.",
)  # fmt: skip
@click.option("--context-limit", type=click.IntRange(min=1), help="The window in tokens.")
def watch(
    session: Path, once: bool, as_json: bool, interval: float, context_limit: int | None
) -> None:
    """Follow SESSION as its agent writes it: zone, fill over time, the last tools, and garbage.

    The file is only read. If it is truncated, replaced or moved away, watching continues with what is
    there.
    """
    follower = SessionFollower(session, context_limit)
    follower.look()
    if as_json:
        write_json(follower.window().to_dict())
    elif once or not _is_seen():
        write_lines(draw(follower.window(), terminal_width()))
    else:
        _follow(follower, interval)


def _follow(follower: SessionFollower, interval: float) -> None:
    """Redraw until Ctrl-C."""
    from rich.console import Console  # noqa: PLC0415 (0.1 s)
    from rich.live import Live  # noqa: PLC0415

    console = Console(highlight=False)
    try:
        with Live(console=console, screen=False, auto_refresh=False) as live:
            while True:
                live.update(_rich(follower.window()), refresh=True)
                time.sleep(interval)
                follower.look()
    except KeyboardInterrupt:
        return


def _rich(now: LiveWindow) -> Text:
    from rich.text import Text  # noqa: PLC0415

    from ctxgc.drawing import STYLES  # noqa: PLC0415

    lines = [
        Text.assemble(*((text, STYLES[style]) for text, style in line))
        for line in draw(now, terminal_width(), shutil.get_terminal_size((100, 24)).lines - 1)
    ]
    return Text("\n").join(lines)


def _is_seen() -> bool:
    return sys.stdout.isatty()


# -- One frame


def draw(now: LiveWindow, width: int, height: int | None = None) -> list[Line]:
    """Return the lines of a frame of at most this width and height.

    If the height is too small, the oldest tools go first, then the chart.
    """
    head, over_time, tools, garbage = (
        _head(now, width), _over_time(now, width), _tools(now), _garbage(now, width)
    )  # fmt: skip
    if height is not None:
        room = height - len(head) - len(garbage)
        over_time = over_time if len(over_time) <= room else []
        room -= len(over_time)
        tools = tools[:room] if room > _TOOLS_HEAD else []
    return [cut(line, width) for line in (*head, *over_time, *tools, *garbage)]


def _head(now: LiveWindow, width: int) -> list[Line]:
    about = ", ".join(filter(None, (now.kind.replace("_", " "), now.model, now.project)))
    filled = f"{now.tokens:,} of {now.limit:,} tokens ({now.percent:.0f}%)"
    window = f", window {now.window}" if now.window > 1 else ""
    written = f"last written {_ago(now.seconds_quiet)}"
    said = f"{filled}, {count(now.messages, 'message')}{window}, {written}"
    return [
        [(printable(now.name), "name"), (f"  {printable(about)}", "faint")],
        [*bar(now.percent, _BAR), (f" {now.zone}", now.zone)],
        *map(plain, wrapped(said, width)),
    ]


def _ago(seconds: float) -> str:
    return "now" if seconds < 2 else f"{age_text(seconds)} ago"


def _over_time(now: LiveWindow, width: int) -> list[Line]:
    percents = [100.0 * sample.tokens / now.limit for sample in now.samples]
    if len(percents) < 2:
        return []
    return [plain(""), plain("fill over time", "title"), *chart(percents, width, _MARKS)]


def _tools(now: LiveWindow) -> list[Line]:
    if not now.tools:
        return []
    return [plain(""), plain("last tools", "title"), *map(_tool, reversed(now.tools))]


def _tool(tool: ToolSample) -> Line:
    said = printable(" ".join(mask_secrets(tool.said).split()))
    if tool.tokens is None:
        return [(f"  {'…':>8}  {printable(tool.name)} ", "name"), (f"{said} (running)", "faint")]
    style = "critical" if tool.failed else ""
    return [(f"  {tool.tokens:>8,}  {printable(tool.name)} ", style), (said, "faint")]


def _garbage(now: LiveWindow, width: int) -> list[Line]:
    garbage = now.garbage
    if not garbage.tokens:
        return [plain(""), plain("no garbage: everything is reachable", "faint")]
    rows = sorted((each for each in garbage.reasons if each.tokens), key=lambda each: -each.tokens)
    shown = [(each.reason, float(each.tokens), f"{each.tokens:,}", "tokens") for each in rows]
    advice = f"what would leave: ctxgc prune {printable(now.called)}"
    return [
        plain(""),
        plain(f"garbage: {garbage.tokens:,} tokens, {garbage.percent:.0f}%", "title"),
        *terminal_bars(shown, width),
        plain(advice, "faint"),
    ]
