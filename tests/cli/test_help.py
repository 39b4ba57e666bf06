"""Help is there at once, and says what click would say."""

from __future__ import annotations

import os
import subprocess
import sys

from ctxgc.cli.start import help_text

_NARROW = ("COLUMNS", "_CTXGC_COMPLETE")


def _python(*arguments: str, **environment: str) -> str:
    known = {name: value for name, value in os.environ.items() if name not in _NARROW}
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        encoding="utf-8",
        check=True,
        env={**known, **environment},
    )
    return done.stdout


def test_help_reads_as_click_would_write_it() -> None:
    by_click = "from ctxgc.cli import main; main(['--help'], prog_name='ctxgc')"
    assert _python("-c", by_click, COLUMNS="80") == f"{help_text()}\n"


def test_where_the_width_is_given_click_writes_help() -> None:
    assert _python("-m", "ctxgc.cli", "--help", COLUMNS="80") == f"{help_text()}\n"
    assert _python("-m", "ctxgc.cli", "--help", COLUMNS="50") != f"{help_text()}\n"


def test_help_needs_no_package() -> None:
    probe = (
        "import sys; sys.argv = ['ctxgc', '--help']; from ctxgc.cli.start import run; run();"
        "print(sorted(m for m in sys.modules if m.startswith(('click', 'rich', 'msgspec'))))"
    )
    assert _python("-c", probe) == f"{help_text()}\n[]\n"
