"""Runs `python -m ctxgc` many times in one process, where starting one for each would take too long.

It reads a JSON list of argument lists and writes the JSON list of what each call wrote and of its exit
code. Only calls that read are run this way.
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys


def run(arguments: list[str]) -> tuple[str, int]:
    """Return what one call wrote, and its exit code."""
    written = io.StringIO()
    sys.argv = ["ctxgc", *arguments]
    code: object = 0
    with contextlib.redirect_stdout(written):
        try:
            runpy.run_module("ctxgc", run_name="__main__")
        except SystemExit as end:
            code = end.code
    return written.getvalue(), code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    json.dump([run(arguments) for arguments in json.load(sys.stdin)], sys.stdout)
