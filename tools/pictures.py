"""Make the pictures of the docs in docs/pictures: `python -m tools.pictures [NAME ...]`.

The page is a picture from a real browser, the terminals are recorded with tmux, and `tools.concept_pictures`
draws those of the concepts. Make them again when what they show has changed; `python -m tools.browser`
installs the browser.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ctxgc.demo.pages import SESSION, write_report
from tests.browser.page_server import Answers, served
from tools import browser, concept_pictures, recording
from tools.requirement_scan import ROOT

PICTURES = ROOT / "docs" / "pictures"
DEMO = Path("out") / "demo"
PAGE_SIZE = (1000, 1480)
DASHBOARDS = {360: 1500, 1400: 1500, 3840: 2000}
"""The widths and heights in which the dashboard is shown."""


def report(folder: Path) -> bytes:
    """Return the upper part of the demo's page as a browser shows it."""
    width, height = PAGE_SIZE
    with browser.opened() as started:
        page = started.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        page.goto((folder / write_report(DEMO)).as_uri())
        return page.screenshot()


def analyze(folder: Path) -> bytes:
    """Return the terminal of `ctxgc analyze` on the demo's session."""
    write_report(DEMO)
    return _terminal(["ctxgc", "analyze", str(DEMO / SESSION), "--top", "3"], folder, 104)


def lab(folder: Path) -> bytes:
    """Return the terminal of a small run of the lab."""
    return _terminal(["ctxgc", "lab", "run", "--demo"], folder, 128)


def dashboard(_folder: Path, width: int, *, dark: bool) -> bytes:
    """Return a session of the dashboard, with a made-up past, in a window of this width."""
    with served(Answers(requests=240, segments=900)) as url, browser.opened() as started:
        page = started.new_page(
            viewport={"width": width, "height": DASHBOARDS[width]},
            color_scheme="dark" if dark else "light",
        )
        page.goto(f"{url}#/s/stored.made?at=193&segment=s-640")
        page.wait_for_selector(".graph")
        return page.screenshot()


def _dashboards() -> dict[str, tuple[str, Callable[[Path], bytes]]]:
    named = {
        f"dashboard-{width}-{scheme}": partial(dashboard, width=width, dark=scheme == "dark")
        for width in DASHBOARDS
        for scheme in ("light", "dark")
    }
    return {name: (f"{name}.png", make) for name, make in named.items()}


MAKERS: dict[str, tuple[str, Callable[[Path], bytes]]] = {
    "report": ("report.png", report),
    "analyze": ("analyze.svg", analyze),
    "lab": ("lab.svg", lab),
    "path": ("path.svg", concept_pictures.path),
    "liveness": ("liveness.svg", concept_pictures.liveness),
    "worth": ("worth.svg", concept_pictures.worth),
    "price": ("price.svg", concept_pictures.price),
    "order": ("order.svg", concept_pictures.order),
    **_dashboards(),
}


def _terminal(command: Sequence[str], folder: Path, columns: int) -> bytes:
    return recording.draw(command, recording.record(command, folder, columns), columns).encode()


def main(arguments: list[str] | None = None) -> int:
    """Make the named pictures, or all."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(MAKERS)}")
    names = parser.parse_args(arguments).names or list(MAKERS)
    if unknown := set(names) - set(MAKERS):
        parser.error(f"unknown picture: {', '.join(sorted(unknown))}")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        os.chdir(made)  # paths in the pictures are relative to this folder
        for name in names:
            file, make = MAKERS[name]
            size = (PICTURES / file).write_bytes(make(Path(made)))
            print(f"{file}: {size:,} bytes")
        os.chdir(ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
