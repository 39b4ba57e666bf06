"""Tables and times for people."""

from __future__ import annotations

from collections.abc import Sequence


def duration(seconds: float) -> str:
    """Return a time with a unit that leaves few digits."""
    for unit, length in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds * 1e6:.0f} us"


def print_table(rows: Sequence[Sequence[str]], *, names: bool = False) -> None:
    """Print rows in columns to the right; with `names` the first column stands to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        if names:
            cells[0] = row[0].ljust(widths[0])
        print("  ".join(cells).rstrip())
