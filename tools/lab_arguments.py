"""The arguments of the tools that play recorded runs."""

from __future__ import annotations

import argparse
from pathlib import Path


def parser_of(name: str, said: str | None, set_name: str = "") -> argparse.ArgumentParser:
    """Return a parser for `python -m tools.NAME` with the options that select runs."""
    parser = argparse.ArgumentParser(
        prog=f"python -m tools.{name}",
        description=said,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, help="a file of runs, or a folder of them")
    parser.add_argument("--set", default=set_name, help="read only this file from the folder")
    parser.add_argument("--every", type=int, default=1, help="play only every Nth run")
    return parser
