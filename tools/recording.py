"""Terminal pictures: a command runs in tmux as it does before people, and its screen becomes an SVG."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

ROWS = 200
PATIENCE = 300.0
_PAUSE = 0.1
_HIDDEN = {"NO_COLOR", "TMUX", "COLUMNS", "LINES"}
# As the title of the pane, the exit code comes behind all that the command wrote, by the same way.
_TELL_THE_END = r"printf '\033]2;ended %s\033\\' $?; exec cat"

# Rich's own format asks a server for a font; a picture needs nothing beside itself.
_SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: arial; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def find() -> str | None:
    """Return the tmux of this machine, if it has one."""
    return shutil.which("tmux")


def record(command: Sequence[str], folder: Path, columns: int) -> list[str]:
    """Return what a command leaves on a terminal of this width, line by line, with its colours.

    The command runs in the folder, on a tmux server of its own. Raises RuntimeError when it fails, or
    when there is no tmux.
    """
    program = find()
    if program is None:
        raise RuntimeError("no tmux here: install the package tmux")
    with tempfile.TemporaryDirectory() as own:
        tmux = _Tmux(program, Path(own) / "socket")
        try:
            tmux.start(shlex.join(command), folder, columns)
            return tmux.finished().rstrip().splitlines()
        finally:
            tmux.stop()


def draw(command: Sequence[str], lines: Sequence[str], columns: int) -> str:
    """Return an SVG of a terminal in which a command wrote these lines; the same lines, the same bytes."""
    console = Console(
        record=True, file=io.StringIO(), width=columns, force_terminal=True, highlight=False
    )
    console.print(Text(f"$ {shlex.join(command)}", style="bold"))
    for line in AnsiDecoder().decode("\n".join(lines)):  # a colour lasts beyond the end of its line
        console.print(line, no_wrap=True, crop=True)
    drawn = console.export_svg(
        title=command[0], theme=SVG_EXPORT_THEME, code_format=_SVG, unique_id="t"
    )
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines() if line.strip())


class _Tmux:
    """One command in one pane of a server that nobody else uses."""

    def __init__(self, program: str, socket: Path) -> None:
        self._command = [program, "-S", str(socket), "-f", os.devnull, "-u"]

    def start(self, command: str, folder: Path, columns: int) -> None:
        place = ["-x", str(columns), "-y", str(ROWS), "-c", str(folder)]
        script = ["sh", "-c", f"{command}; {_TELL_THE_END}"]
        self._run(
            "start-server",
            ";",
            "set",
            "-g",
            "status",
            "off",
            ";",
            "new-session",
            "-d",
            *place,
            *script,
        )

    def finished(self) -> str:
        """Return the screen once the command has ended well."""
        deadline = time.monotonic() + PATIENCE
        while not (title := self._run("display", "-p", "#{pane_title}").strip()).startswith(
            "ended "
        ):
            if time.monotonic() > deadline:
                raise RuntimeError(f"still running after {PATIENCE:.0f} s")
            time.sleep(_PAUSE)
        screen = self._run("capture-pane", "-e", "-p")
        if title != "ended 0":
            raise RuntimeError(f"{title}: {screen.strip()}")
        return screen

    def stop(self) -> None:
        subprocess.run([*self._command, "kill-server"], capture_output=True, check=False)  # noqa: S603

    def _run(self, *words: str) -> str:
        done = subprocess.run(  # noqa: S603 - a program that this file found
            [*self._command, *words],
            capture_output=True,
            check=True,
            encoding="utf-8",
            env=_environment(os.environ),
        )
        return done.stdout


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a person's terminal, with our programs first."""
    kept = {name: value for name, value in given.items() if name not in _HIDDEN}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    return {**kept, "PATH": path, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
