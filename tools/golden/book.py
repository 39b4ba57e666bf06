"""The book of goldens: each name with the scenario that makes its text."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools.golden.places import FILES

Scenario = Callable[[Path], str]
"""Makes a golden in an empty folder of its own."""

REWRITE = "python -m tools.golden write"
_MOST_SHOWN = 200


class GoldenBook:
    """Knows all goldens by the names of their files."""

    def __init__(self) -> None:
        self._scenarios: dict[str, Scenario] = {}

    def add(self, name: str, scenario: Scenario) -> None:
        """Take in a golden."""
        if name in self._scenarios:
            raise ValueError(f"there are two goldens named {name}")
        self._scenarios[name] = scenario

    def names(self) -> list[str]:
        """Return the names in the order of the alphabet."""
        return sorted(self._scenarios)

    def make(self, name: str) -> bytes:
        """Return what a golden would be now."""
        with tempfile.TemporaryDirectory(prefix="golden-") as folder:
            return self._scenarios[name](Path(folder).resolve()).encode()

    def write(self, name: str) -> bool:
        """Write a golden and tell whether that changed it."""
        path, data = FILES / name, self.make(name)
        FILES.mkdir(parents=True, exist_ok=True)
        changed = not path.is_file() or path.read_bytes() != data
        path.write_bytes(data)
        return changed

    def difference(self, name: str) -> str:
        """Return how a golden differs from its file, with what to do; empty when it does not."""
        path, now = FILES / name, self.make(name)
        before = path.read_bytes() if path.is_file() else b""
        if now == before:
            return ""
        old, new = (data.decode(errors="replace").splitlines() for data in (before, now))
        lines = list(
            difflib.unified_diff(old, new, f"{name} as written", f"{name} now", lineterm="")
        )
        more = f"\n({len(lines) - _MOST_SHOWN} more lines)" if len(lines) > _MOST_SHOWN else ""
        shown = "\n".join(lines[:_MOST_SHOWN])
        return f"{name} changed; where that is right: {REWRITE} {name}\n{shown}{more}"
