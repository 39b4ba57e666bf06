"""Help is there at once, and says what click would say."""

from __future__ import annotations

import os
import subprocess
import sys

import click

from ctxgc.cli import main
from ctxgc.cli.start import help_text


def test_help_reads_as_click_would_write_it() -> None:
    context = click.Context(main, info_name="ctxgc", terminal_width=78)
    assert help_text() == main.get_help(context)


def test_help_needs_no_package() -> None:
    probe = (
        "import sys; sys.argv = ['ctxgc', '--help']; from ctxgc.cli.start import run; run();"
        "print(sorted(m for m in sys.modules if m.startswith(('click', 'rich', 'msgspec'))))"
    )
    narrow = ("COLUMNS", "_CTXGC_COMPLETE")
    done = subprocess.run(
        [sys.executable, "-c", probe],
        capture_output=True,
        encoding="utf-8",
        check=True,
        env={name: value for name, value in os.environ.items() if name not in narrow},
    )
    assert done.stdout == f"{help_text()}\n[]\n"
