"""The command line: `ctxgc COMMAND`. Without the extra `ctxgc[cli]` it says what to install."""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from ctxgc.cli.group import main

__all__ = ["main"]


def __getattr__(name: str) -> typing.Any:
    """Load the commands' group when it is asked for: help alone does without it."""
    if name != "main":
        raise AttributeError(f"module 'ctxgc.cli' has no attribute '{name}'")
    try:
        from ctxgc.cli.group import main  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        from ctxgc.cli.start import main_without_click  # noqa: PLC0415

        return main_without_click
    return main
