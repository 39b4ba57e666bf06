"""The texts that thrift leaves behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

import msgspec

from ctxgc.core import SHORT_GAP, Text, copy_mark, short_tombstone, with_gaps
from ctxgc.strategies.mark_sweep.copies import CopiedLines
from ctxgc.strategies.mark_sweep.items import Census
from ctxgc.strategies.mark_sweep.presets import Preset, Shares

# -- The cover: the cheapest lines of a text that hold what nothing else in the view holds


CHARS_PER_TOKEN = 4
_LINE_OVERHEAD = 2
_RARE_WORD = 3
_NAME = 100
_PATH = 200
"""Weights are whole numbers, so that sums do not depend on the order of a set."""


class PriceCover(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a text that stay, the names that are listed bare, and the characters of both."""

    kept: tuple[int, ...]
    listed: tuple[str, ...]
    chars: int

    @property
    def listed_chars(self) -> int:
        """The characters of the bare names."""
        return _listed_chars(self.listed)


def cover(
    text: Text, lines: Iterable[int], shares: Shares, *, census: Census, how: Preset, size: int
) -> PriceCover:
    """Return what stays of a text that leaves a view.

    Args:
        text: the text.
        lines: those of its lines that are shown now.
        shares: how much of it may stay.
        census: who else holds what.
        how: the constants.
        size: the characters that the shares are shares of.
    """
    wanted, weights = _wanted(text, lines, census, how)
    kept, chars, held = _greedy(text, wanted, weights, shares.lines * size, how.floor)
    missing = [n for n in weights if weights[n] >= _NAME and n not in held and not census.listed[n]]
    listed = _fitting(missing, census, max(how.least_names, shares.names * size))
    return PriceCover(kept=tuple(sorted(kept)), listed=listed, chars=chars + _listed_chars(listed))


def _wanted(
    text: Text, lines: Iterable[int], census: Census, how: Preset
) -> tuple[dict[int, set[str]], dict[str, int]]:
    """Return what only this text holds, line by line: names, and rare plain words, which count little."""
    count, seen = census.names, census.seen
    names = {name for name in text.names if count[name] <= 1}
    words = set[str]()
    if how.word_weight:
        count = census.words
        words = {w for w in text.words if count[w] <= 1 and seen[w] <= _RARE_WORD}
    found = ((n, names & text.line_names[n] | words & text.line_words[n]) for n in lines)
    wanted = {line: own for line, own in found if own}
    weights = dict.fromkeys(set[str]().union(*wanted.values()), round(_NAME * how.word_weight))
    weights |= {name: _PATH if "/" in name else _NAME for name in weights.keys() & names}
    return wanted, weights


def _greedy(
    text: Text,
    wanted: Mapping[int, set[str]],
    weights: Mapping[str, int],
    budget: float,
    floor: float,
) -> tuple[list[int], int, set[str]]:
    costs = {line: text.cost(line) + _LINE_OVERHEAD for line in wanted}
    weigh = weights.__getitem__
    queue = [(-sum(map(weigh, own)) / costs[line], line) for line, own in wanted.items()]
    heapify(queue)
    kept: list[int] = []
    held: set[str] = set()
    used = 0
    while queue:
        rate, line = heappop(queue)
        now = sum(map(weigh, wanted[line] - held)) / costs[line]
        # A line is worth less and less as others are kept, so a stale worth is looked at again.
        if queue and -now > queue[0][0] and -now > rate:
            if now > 0:
                heappush(queue, (-now, line))
            continue
        if now * CHARS_PER_TOKEN < floor * _NAME or now <= 0:
            break
        if used + costs[line] <= budget:
            kept.append(line)
            held |= wanted[line]
            used += costs[line]
    return kept, used, held


def _fitting(names: list[str], census: Census, budget: float) -> tuple[str, ...]:
    """Return the names that fit: paths first, then those that stood in one message only, then short ones."""
    chosen: list[str] = []
    for name in sorted(names, key=lambda n: ("/" not in n, census.seen[n] > 1, len(n), n)):
        budget -= len(name) + 2
        if budget < 0:
            break
        chosen.append(name)
    return tuple(chosen)


def _listed_chars(names: tuple[str, ...]) -> int:
    return sum(len(name) + 2 for name in names)


# -- The texts that thrift leaves behind


HEAD_CHARS = 60


def stub(text: Text, cover: PriceCover, *, tokens: int, why: str, recall: str) -> str:
    """Return the text that stands in for a result: a tombstone, the names, the lines that stay."""
    last = len(text.lines)

    def mark(_: int, line: int) -> str:
        # The own number of a line shows the gap before it, and the head the one after the last.
        return "" if line == last or text.is_numbered(line) else SHORT_GAP

    kept = with_gaps(text.lines, cover.kept, mark)
    return short_tombstone(tokens, why, recall=recall, names=cover.listed, kept=kept)


def without_copies(
    text: Text, runs: Sequence[CopiedLines], names: Mapping[str, str], recall: str
) -> str:
    """Return a result in which runs of lines that stand above are replaced by a mark.

    Args:
        text: the result.
        runs: what need not be sent.
        names: what to call each source.
        recall: the call that recalls the result as it was; the first mark carries it.
    """
    call = f"; {recall}" if recall else ""
    passages: list[str] = []
    last = 0
    for run in runs:
        passages.append(text.passage(last, run.first))
        lines = f"{run.last - run.first} lines of the {names[run.source]} above"
        passages.append(f"{copy_mark(lines + call)}\n")
        last, call = run.last, ""
    passages.append(text.passage(last, len(text.lines)))
    return "".join(passages).removesuffix("\n")
