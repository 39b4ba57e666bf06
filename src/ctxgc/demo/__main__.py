"""Run the demo: `python -m ctxgc.demo`, or `make demo`."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TextIO

from ctxgc.demo.pages import open_screen, sections, write_report
from ctxgc.demo.run import PRICE_WINDOW, ROOM_WINDOW, play
from ctxgc.drawing import terminal_width


def main(arguments: list[str] | None = None, stream: TextIO | None = None) -> int:
    """Run a session and show what happened."""
    parser = argparse.ArgumentParser(prog="python -m ctxgc.demo", description=__doc__)
    parser.add_argument(
        "--segments", type=int, default=1_000, help="length of the session, in segments"
    )
    parser.add_argument("--seed", type=int, default=7, help="random seed for the demo session")
    parser.add_argument(
        "--report",
        type=Path,
        metavar="DIR",
        help="folder for the session and an HTML report",
    )
    chosen = parser.parse_args(arguments)
    stream = stream or _stdout()
    screen = open_screen(stream)
    with screen.filling() as watch:
        windows = (ROOM_WINDOW, PRICE_WINDOW)
        room, price = (play(window, chosen.segments, chosen.seed, watch) for window in windows)
    for section in sections(room, price, terminal_width()):
        for line in section:
            screen.line(line)
        screen.line([])
    return 0 if chosen.report is None else _report(chosen, stream)


def _report(chosen: argparse.Namespace, stream: TextIO) -> int:
    """Write the report of `--report`; its path is the last line, unwrapped on a narrow terminal too."""
    try:
        page = write_report(chosen.report, chosen.segments, chosen.seed)
    except OSError as error:
        print(f"error: --report: {error} (next: use a writable folder)", file=sys.stderr)
        return 1
    print(
        "  Where its tokens would have gone without a collection (open it in a browser):",
        file=stream,
    )
    print(f"  {page}", file=stream)
    return 0


def _stdout() -> TextIO:
    """Return the standard output, set not to fail on a terminal without block characters."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    return sys.stdout


if __name__ == "__main__":
    sys.exit(main())
