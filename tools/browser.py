"""A real browser for the tests of pages: `python -m tools.browser` installs Debian's Chromium.

Where it cannot be had, the gate says so and passes, and the tests that need it are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGES = ("chromium", "fonts-dejavu-core")
PATIENCE = 900


def find() -> Path | None:
    """Return the browser of this machine, if it has one."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return Path(found) if found else None


def arguments() -> list[str]:
    """Return what the browser must be told: as root its sandbox does not start."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []


@contextmanager
def opened() -> Iterator[Browser]:
    """Give the browser of this machine, started. Raises RuntimeError when it has none."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only while it is used

    program = find()
    if program is None:
        raise RuntimeError("no browser found: python -m tools.browser installs one")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=arguments())
        yield started
        started.close()


def main() -> int:
    """Make sure that there is a browser, or say why there is none; return 0 either way."""
    if find() is None and (trouble := _install()):
        print(f"SKIPPED browser: {trouble}")
        return 0
    browser = find()
    if browser is None:
        print(f"SKIPPED browser: {PACKAGES[0]} brought no program")
        return 0
    said = subprocess.run(  # noqa: S603 - a program that this file found
        [browser, *arguments(), "--version"], capture_output=True, encoding="utf-8", check=False
    )
    print(f"held: {said.stdout.strip() or browser}")
    return 0


def _install() -> str:
    """Install the packages, and return what went wrong."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return f"not root on a Debian: install {PACKAGES[0]} by hand"
    for command in (["update", "-qq"], ["install", "-y", "-qq", *PACKAGES]):
        try:
            subprocess.run(  # noqa: S603 - commands of this file only
                ["apt-get", "-o", "Acquire::Retries=5", *command],  # noqa: S607 - wherever it is
                check=True,
                capture_output=True,
                timeout=PATIENCE,
                encoding="utf-8",
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            )
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stderr", "") or str(error)).strip()
            return f"apt-get {command[0]}: {said.splitlines()[-1]}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
