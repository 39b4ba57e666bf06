"""The command line: `ctxgc COMMAND`.

`start` has the table of commands and writes help at once; `group` imports a command when it is called.
Each command is a file of its name: it reads its options, asks `session`, `insight`, `agents`, `lab` or
`mcp`, and writes text or JSON with `output`. Nothing is computed here.

Others may use `run` (the program) and `main` (the group of commands as click has it; without the extra
`ctxgc[cli]` it says what to install).
"""

from __future__ import annotations

from ctxgc.cli.start import load_main, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctxgc.cli.group import main

__all__ = ["main", "run"]


def __getattr__(name: str) -> Any:
    """Load the group of commands when it is asked for: help alone does without it."""
    if name != "main":
        raise AttributeError(f"module 'ctxgc.cli' has no attribute '{name}'")
    return load_main()
