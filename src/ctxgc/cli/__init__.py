"""The command line: `ctxgc COMMAND`. Without the extra `ctxgc[cli]` it says what to install."""

from __future__ import annotations

import typing

from ctxgc.cli.start import load_main, run

if typing.TYPE_CHECKING:
    from ctxgc.cli.group import main

__all__ = ["main", "run"]


def __getattr__(name: str) -> typing.Any:
    """Load the commands' group when it is asked for: help alone does without it."""
    if name != "main":
        raise AttributeError(f"module 'ctxgc.cli' has no attribute '{name}'")
    return load_main()
