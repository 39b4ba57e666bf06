"""Evacuation: which lines of a large text stay when the rest is stashed.

The lines that stay are verbatim. They are chosen as a cover: the cheapest lines that together hold
every identifier that no other working segment holds. What does not fit is named in the tombstone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import msgspec

from ctxgc.core.identifiers import tokens

MAX_LINE = 200
LINE_SHARE = 0.30
NAME_SHARE = 0.15
GAP = "[...]"

_FIELD_END = re.compile(r"[,;}\])\s]")
_BETWEEN_NAMES = re.compile(r"[^\w$~@./:\\#-]")


class Evacuation(msgspec.Struct, frozen=True):
    """The verbatim text that stays, and the identifiers that only the stash still holds."""

    kept: str
    names: tuple[str, ...]


def evacuate(
    text: str,
    names: Sequence[str],
    *,
    line_share: float = LINE_SHARE,
    name_share: float = NAME_SHARE,
) -> Evacuation:
    """Return what stays of a text for the sake of some of its identifiers.

    Args:
        text: the text of the segment.
        names: the identifiers that no other working segment holds, each once.
        line_share: how much of the text may stay as lines.
        name_share: how much of the text may be spent on bare names.
    """
    if not line_share or not names:
        return Evacuation("", _fitting(names, name_share * len(text)))
    pieces = split_lines(text)
    only = frozenset(names)
    wanted = [only.intersection(tokens(piece)) for piece in pieces]
    kept = cover(wanted, [_cost(piece) for piece in pieces], line_share * _cost(text))
    held = frozenset[str]().union(*(wanted[index] for index in kept))
    missing = [name for name in names if name not in held]
    return Evacuation(with_gaps(pieces, kept), _fitting(missing, name_share * len(text)))


def split_lines(text: str) -> list[str]:
    """Split a text at its newlines, and very long lines at the end of a field."""
    pieces: list[str] = []
    for line in text.split("\n"):
        start = 0
        while len(line) - start > MAX_LINE:
            end = _field_end(line, start)
            pieces.append(line[start:end])
            start = end
        pieces.append(line[start:])
    return pieces


def cover(wanted: list[frozenset[str]], costs: list[float], budget: float) -> list[int]:
    """Return the pieces, in order, that greedily cover most wanted names per cost within a budget."""
    covered: set[str] = set()
    chosen: list[int] = []
    queue = [(-len(names) / costs[i], i) for i, names in enumerate(wanted) if names]
    heapify(queue)
    while queue:
        rate, index = heappop(queue)
        gain = len(wanted[index] - covered)
        if not gain or costs[index] > budget:
            continue
        # A piece's worth only falls as others are chosen, so a stale rate is refreshed when it surfaces.
        if -gain / costs[index] > rate:
            heappush(queue, (-gain / costs[index], index))
            continue
        chosen.append(index)
        covered |= wanted[index]
        budget -= costs[index]
    return sorted(chosen)


def _cost(piece: str) -> float:
    return len(piece) / 4 + 1.5


def _field_end(line: str, start: int) -> int:
    """Return where to cut: after a field, else between two names, else where the room ends."""
    for mark, first in ((_FIELD_END, start + MAX_LINE // 2), (_BETWEEN_NAMES, start)):
        ends = [match.end() for match in mark.finditer(line, first, start + MAX_LINE)]
        if ends:
            return ends[-1]
    return start + MAX_LINE


def with_gaps(pieces: Sequence[str], kept: Sequence[int]) -> str:
    """Return the pieces that stay, with a mark for each gap between them."""
    lines: list[str] = []
    last = -1
    for index in kept:
        if index > last + 1:
            lines.append(GAP)
        lines.append(pieces[index])
        last = index
    if kept and last < len(pieces) - 1:
        lines.append(GAP)
    return "\n".join(lines)


def _fitting(names: Sequence[str], budget: float) -> tuple[str, ...]:
    """Return the names that fit, short ones first, in the order of the text."""
    if sum(map(len, names)) + 2 * len(names) <= budget:
        return tuple(names)
    chosen: set[str] = set()
    for name in sorted(names, key=len):
        budget -= len(name) + 2
        if budget < 0:
            break
        chosen.add(name)
    return tuple([name for name in names if name in chosen])
