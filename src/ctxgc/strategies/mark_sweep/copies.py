"""Copies: lines of a new result that stand in the view already need not be sent again.

Only runs of lines count that stand together, in the same order, in one older message: a reader finds
them there.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ctxgc.core import Text
from ctxgc.strategies.mark_sweep.presets import Preset

MARK_CHARS = 44
_MOST_PLACES = 6


class CopiedLines(msgspec.Struct, frozen=True):
    """Lines `first` to `last` (not included) of a new text that stand in an older source."""

    first: int
    last: int
    source: str


class Copies:
    """Knows where every long line of the view stands."""

    def __init__(self) -> None:
        self._places: dict[str, list[tuple[str, int]]] = {}
        self._texts: dict[str, Text] = {}
        self._kept: dict[str, frozenset[int]] = {}

    def note(self, source: str, text: Text) -> None:
        """Remember the lines of a text that is shown whole."""
        self._texts[source] = text
        self._kept.pop(source, None)
        for line, key in enumerate(text.keys):
            if key:
                places = self._places.setdefault(key, [])
                places.append((source, line))
                if len(places) > _MOST_PLACES:
                    del places[0]

    def narrow(self, source: str, kept: Iterable[int]) -> None:
        """Only some lines of a text are still shown."""
        self._kept[source] = frozenset(kept)

    def forget(self, source: str) -> None:
        """A text is no longer shown."""
        self._texts.pop(source, None)

    def find(self, text: Text, how: Preset, own: str) -> list[CopiedLines]:
        """Return the runs of a new text that need not be sent; none unless they save enough.

        `own` is the source that the text itself is, so that it is no copy of itself.
        """
        runs = self._runs(text, how, own)
        chars = sum(text.cost(n) for run in runs for n in range(run.first, run.last))
        won = chars - MARK_CHARS * len(runs)
        return runs if runs and won >= how.copy_saving * text.size else []

    def _runs(self, text: Text, how: Preset, own: str) -> list[CopiedLines]:
        runs: list[CopiedLines] = []
        line = 0
        while line < len(text.lines):
            end, source = self._longest(text, line, how, own)
            if end > line:
                runs.append(CopiedLines(line, end, source))
                line = end
            else:
                line += 1
        return runs

    def _longest(self, text: Text, line: int, how: Preset, own: str) -> tuple[int, str]:
        best, found = line, ""
        for source, start in self._places.get(text.keys[line], ()) if text.keys[line] else ():
            known = self._texts.get(source) if source != own else None
            kept = self._kept.get(source)
            end = _same_until(text, line, known, start, kept) if known is not None else line
            if end > best and _is_worth(text, line, end, how):
                best, found = end, source
        return best, found


def _same_until(text: Text, line: int, known: Text, start: int, kept: frozenset[int] | None) -> int:
    most = min(len(text.lines) - line, len(known.lines) - start)
    same = 0
    while same < most and text.bare[line + same] == known.bare[start + same]:
        if kept is not None and start + same not in kept:
            break
        same += 1
    return line + same


def _is_worth(text: Text, first: int, last: int, how: Preset) -> bool:
    if sum(1 for key in text.keys[first:last] if key) < how.copy_lines:
        return False
    return sum(map(text.cost, range(first, last))) >= how.copy_chars
