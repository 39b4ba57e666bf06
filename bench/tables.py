"""What all benchmarks share: help, tables and durations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence


def run(main: Callable[[list[str]], int], what: str | None) -> int:
    """Call a benchmark with the command line arguments, or print its help."""
    words = sys.argv[1:]
    if {"-h", "--help"}.isdisjoint(words):
        return main(words)
    print(what)
    return 0


def duration(seconds: float) -> str:
    """Return a time with a unit that leaves few digits."""
    for unit, length in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds * 1e6:.0f} us"


def print_table(rows: Sequence[Sequence[str]], *, names: bool = False) -> None:
    """Print rows in right-aligned columns; with `names` the first column is left-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        if names:
            cells[0] = row[0].ljust(widths[0])
        print("  ".join(cells).rstrip())
