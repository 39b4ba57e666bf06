"""A file that a command will write when it is done; whether it can is told before it begins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class OutputFile(click.Path):
    """The path of a file to write, in a folder that is there and may be written to."""

    def __init__(self, *, allow_dash: bool = False) -> None:
        super().__init__(dir_okay=False, allow_dash=allow_dash, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; nothing is made, nothing is written."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        folder = path.parent
        if self.allow_dash and str(path) == "-":
            return path
        if not path.name:
            self.fail("the file has no name", param, ctx)
        if not folder.is_dir():
            self.fail(f"there is no folder '{folder}' to write '{path}' to", param, ctx)
        if not os.access(folder, os.W_OK | os.X_OK):
            self.fail(f"the folder '{folder}' may not be written to", param, ctx)
        return path
