"""Take pictures of all pages and terminals, to be looked at: `python -m tools.screenshots [FOLDER]`.

Pages in a real browser at 400 and 1400 pixels, light and dark; commands in a real terminal (tmux) of 80, 100
and 140 columns. They go to out/screenshots and are not kept: what the docs show is made by `tools.pictures`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ctxgc.cli import main as main_command
from ctxgc.demo.pages import SESSION, write_report
from tests.wire.transcripts import made
from tools import browser, recording
from tools.requirement_scan import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect

WINDOWS = (400, 1400)
PIECE = 1600
"""How many pixels of a page are on one picture: longer ones cannot be looked at."""

TERMINALS = (80, 100, 140)
DEMO = Path("demo")
COMMANDS = {
    "analyze": ("analyze", str(DEMO / SESSION)),
    "prune": ("prune", str(DEMO / SESSION)),
    "watch": ("watch", str(DEMO / SESSION), "--once"),
    "sessions": ("sessions",),
    "cost": ("cost",),
    "history": ("history", "latest"),
    "trace": ("trace", "def price_0_2", "latest"),
    "doctor": ("doctor", str(DEMO / SESSION)),
    "scan": ("scan", str(DEMO / SESSION)),
    "check": ("check", str(DEMO / SESSION), "--max-garbage", "100"),
    "lab": ("lab", "run", "--demo"),
    "demo": ("demo",),
}

AGENTS = Path("agents")
"""Where the agents of the pictures keep their sessions: nobody's own are shown."""


def write_sessions() -> None:
    """Write a session of Codex and, newer, one of Claude Code with a compaction."""
    steps = made.conversation(turns=12, lines=60)
    codex, claude = AGENTS / "codex" / "sessions", AGENTS / "claude" / "projects" / "-repo"
    for folder in (codex, claude):
        folder.mkdir(parents=True, exist_ok=True)
    os.environ["CODEX_HOME"] = str(codex.parent.absolute())
    os.environ["CLAUDE_CONFIG_DIR"] = str(claude.parents[1].absolute())
    made.write_lines(codex / "rollout-made.jsonl", made.codex(steps, session_id="rollout"))
    made.write_lines(claude / "made.jsonl", made.claude_code(steps, compact_after=8))


def pages(folder: Path) -> list[Path]:
    """Write the pages of `analyze` (the demo's session) and of the lab."""
    lab = folder / "lab.html"
    main_command(["lab", "run", "--demo", "--html", str(lab), "--quiet"], standalone_mode=False)
    return [folder / write_report(DEMO), lab]


def shoot_page(started: Browser, page: Path, folder: Path) -> None:
    """Take a page in every window and scheme."""
    for width in WINDOWS:
        for scheme in ("light", "dark"):
            shown = started.new_page(
                viewport={"width": width, "height": 900},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            shown.goto(page.absolute().as_uri())
            high = int(shown.evaluate("document.documentElement.scrollHeight"))
            for number, top in enumerate(range(0, high, PIECE), 1):
                file = folder / f"{page.stem}-{width}-{scheme}-{number}.png"
                clip: FloatRect = {
                    "x": 0,
                    "y": top,
                    "width": width,
                    "height": min(PIECE, high - top),
                }
                shown.screenshot(path=file, full_page=True, clip=clip)
            shown.close()


def shoot_terminal(started: Browser, name: str, folder: Path) -> None:
    """Take what a command leaves on a terminal of every width."""
    command = ["ctxgc", *COMMANDS[name]]
    for columns in TERMINALS:
        lines = recording.record(command, Path.cwd(), columns)
        shown = started.new_page(viewport={"width": columns * 13, "height": 400})
        shown.set_content(recording.draw(command, lines, columns))
        shown.screenshot(path=folder / f"{name}-{columns}.png", full_page=True)
        shown.close()


def main(arguments: list[str] | None = None) -> int:
    """Take all pictures, or only the named ones."""
    parser = argparse.ArgumentParser(prog="python -m tools.screenshots", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "out" / "screenshots")
    parser.add_argument("--only", choices=["pages", *COMMANDS], action="append")
    given = parser.parse_args(arguments)
    folder = given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)  # paths in the pictures are relative to this folder
    write_report(DEMO)
    write_sessions()
    wanted = given.only or ["pages", *COMMANDS]
    with browser.opened() as started:
        for name in wanted:
            if name == "pages":
                for page in pages(folder):
                    shoot_page(started, page, folder)
            else:
                shoot_terminal(started, name, folder)
    print(f"{folder}: {len(list(folder.glob('*.png')))} pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
