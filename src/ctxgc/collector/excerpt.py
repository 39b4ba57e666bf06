"""Excerpts: which lines of one large text stay while the rest is out of the view, with a mark for each gap.

There is one way for everything that shortens a text: a result at birth, a result that the model has not read,
an answer to a recall, a log that is evacuated. They differ in what they give room to: the start, the end, the
lines that hold wanted names, the lines that match words or tell of errors. Hooks load this file, so it needs
no library.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import NamedTuple, TypeVar

from ctxgc.core import moved_note, note, pieces_of, quotable, tokens, with_gaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

# -- The best first: the greedy choice by which every cover is made


T = TypeVar("T")
Piece = TypeVar("Piece", int, tuple[int, int])


def take_best(
    pieces: Iterable[Piece],
    rate: Callable[[Piece], float],
    take: Callable[[Piece], Iterable[Piece]],
    least: float = 0.0,
) -> None:
    """Take pieces, the best first; not those that are worth nothing, nor below the rate `least`.

    Args:
        pieces: what can be taken; of equals the first.
        rate: what a piece is worth now for its cost; it falls as others are taken.
        take: takes a piece if there is room for it, and returns those whose rate that has raised.
        least: the lowest rate.
    """
    queue = [(-rate(piece), piece) for piece in pieces]
    heapify(queue)
    while queue:
        known, piece = heappop(queue)
        if -known < least:
            return
        now = rate(piece)
        if now <= 0 or now < least:
            continue
        # A piece is worth less as others are taken, so a stale rate is looked at again.
        if -now > known and queue and -now > queue[0][0]:
            heappush(queue, (-now, piece))
            continue
        for other in take(piece):
            heappush(queue, (-rate(other), other))


class Held(NamedTuple):
    """The lines that a cover keeps, what they hold of that which was wanted, and what they cost."""

    lines: list[int]
    things: set[str]
    cost: float


def cover_lines(
    wanted: Mapping[int, AbstractSet[str]],
    weigh: Callable[[str], int],
    cost: Callable[[int], float],
    room: float,
    least: float = 0.0,
) -> Held:
    """Return the lines of one text that hold the most wanted things for their cost, each thing once."""
    costs = {line: cost(line) for line in wanted}
    lines: list[int] = []
    held: set[str] = set()
    used = 0.0

    def rate(line: int) -> float:
        return sum(map(weigh, wanted[line] - held)) / costs[line]

    def take(line: int) -> Iterable[int]:
        nonlocal used
        if used + costs[line] <= room:
            lines.append(line)
            held.update(wanted[line])
            used += costs[line]
        return ()

    take_best(wanted, rate, take, least)
    return Held(sorted(lines), held, used)


def fitting(items: Iterable[T], cost: Callable[[T], int], room: float) -> Iterator[T]:
    """Yield what fits into some room, in the order given, up to the first that does not fit."""
    for item in items:
        room -= cost(item)
        if room < 0:
            return
        yield item


def listed_chars(name: str) -> int:
    """Return the characters of a name in a list of names."""
    return len(name) + 2


# -- An excerpt: the pieces of a text that stay


COMMON = 40
"""A word in more lines than this is too common to search for."""

ERRORS = (
    "error", "exception", "traceback", "failed", "failure", "fatal", "panic", "assert", "denied",
)  # fmt: skip
_NEAREST_ERRORS = 6
_WORTH = 1_000
"""Worth is a whole number, so that sums do not depend on the order of a set."""
_OVERHEAD = 6
"""Characters that a line costs besides its own, for its end and a gap."""


class Excerpt:
    """A text in pieces, which are lines or fields of a very long line, and the pieces that stay.

    Each `keep_` method has room of its own, in characters; none keeps a piece that looks like ours.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.pieces, self._ends = pieces_of(text)
        self.kept: set[int] = set()

    def keep_ends(self, head: float, tail: float = 0.0) -> None:
        """Keep what fits of the start and of the end."""
        places = range(len(self.pieces))
        for order, room in ((places, head), (reversed(places), tail)):
            self.kept.update(fitting(quotable(self.pieces, order), self._chars, room))

    def keep_names(self, names: Iterable[str], room: float) -> set[str]:
        """Keep the pieces that hold the most names for their length, and return the names they hold."""
        only = frozenset(names)
        found = (
            (place, only.intersection(tokens(piece))) for place, piece in enumerate(self.pieces)
        )
        return self._cover({place: own for place, own in found if own}, lambda _: 1, room)

    def keep_matches(self, words: Iterable[str], room: float) -> int:
        """Keep the pieces with words, rare ones first, and those that tell of the first and last errors.

        Returns:
            How many lines with rare words are hidden all the same, because there is no room for them.
        """
        wanted: dict[int, set[str]] = {}
        weights: dict[str, int] = {}
        for word in words:
            found = self._holders(word, COMMON + 1)
            if len(found) <= COMMON:
                _want(wanted, weights, found, word, _WORTH // max(1, len(found)))
        matching = {self.line_of(place) for place in wanted}
        _want(wanted, weights, self._error_places(), "", _WORTH // 2)
        self._cover(wanted, weights.__getitem__, room)
        return len(matching.difference(map(self.line_of, self.kept)))

    def written(self, mark: Callable[[int, int], str] | None = None) -> str:
        """Return the pieces that stay, with marks for the others: by default, which lines they are."""
        return with_gaps(self.pieces, sorted(self.kept), mark or self._missing, self._ends)

    def line_of(self, place: int) -> int:
        """Return the number of the line that a piece is a part of, from 1."""
        return 1 + self._lines_before[place]

    def _cover(
        self, wanted: Mapping[int, AbstractSet[str]], weigh: Callable[[str], int], room: float
    ) -> set[str]:
        quoted = quotable(self.pieces, wanted.keys() - self.kept)
        rest = {place: wanted[place] for place in sorted(quoted)}
        found = cover_lines(rest, weigh, lambda n: len(self.pieces[n]) + _OVERHEAD, room)
        self.kept.update(found.lines)
        return found.things

    def _chars(self, place: int) -> int:
        return len(self.pieces[place]) + 1

    def _missing(self, first: int, following: int) -> str:
        start, end = self.line_of(first), self.line_of(following - 1)
        lines = f"line {end}" if start == end else f"lines {start} to {end}"
        if self._ends[following - 1] and (not first or self._ends[first - 1]):
            return f"[... {lines} ...]"
        count = sum(map(len, self.pieces[first:following]))
        return f"[... {count} characters of {lines} ...]"

    @cached_property
    def _lines_before(self) -> list[int]:
        return [0, *accumulate(map(len, self._ends))]

    @cached_property
    def _starts(self) -> list[int]:
        sizes = (len(piece) + len(end) for piece, end in zip(self.pieces, self._ends, strict=True))
        return [0, *accumulate(sizes)]

    @cached_property
    def _lowered(self) -> str:
        lowered = self._text.lower()
        # The lower case of some letters is longer.
        return lowered if len(lowered) == len(self._text) else self._text

    def _error_places(self) -> list[int]:
        found = sorted({n for word in ERRORS for n in self._outer_holders(word)})
        return list(dict.fromkeys([*found[:_NEAREST_ERRORS], *found[-_NEAREST_ERRORS:]]))

    def _outer_holders(self, word: str) -> list[int]:
        """Return the first and the last pieces with a word."""
        found = self._holders(word, _NEAREST_ERRORS)
        last: list[int] = []
        end = len(self._lowered)
        while len(last) < _NEAREST_ERRORS and (at := self._lowered.rfind(word, 0, end)) >= 0:
            last.append(bisect_right(self._starts, at) - 1)
            end = self._starts[last[-1]]
        return [*found, *last]

    def _holders(self, word: str, most: int) -> list[int]:
        """Return the first pieces with a word."""
        found: list[int] = []
        at = self._lowered.find(word)
        while at >= 0 and len(found) < most:
            found.append(bisect_right(self._starts, at) - 1)
            at = self._lowered.find(word, self._starts[found[-1] + 1])
        return found


def _want(
    wanted: dict[int, set[str]],
    weights: dict[str, int],
    places: Iterable[int],
    word: str,
    weight: int,
) -> None:
    """Want each of some pieces for a word: it is worth as much in the second of them as in the first."""
    for place in places:
        thing = f"{place} {word}"
        weights[thing] = weight
        wanted.setdefault(place, set()).add(thing)


# -- What is left of a text: for its names, at birth, in an answer


LINE_SHARE = 0.30
NAME_SHARE = 0.15


class Evacuation(NamedTuple):
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
        name_share: how much of the text may be spent on bare names, of which short ones come first.
    """
    kept, missing = "", names
    if line_share and names:
        lines = Excerpt(text)
        held = lines.keep_names(names, line_share * (len(text) + _OVERHEAD))
        kept = with_gaps(lines.pieces, sorted(lines.kept)) if held else ""
        missing = [name for name in names if name not in held]
    listed = frozenset(fitting(sorted(missing, key=len), listed_chars, name_share * len(text)))
    return Evacuation(kept, tuple(name for name in missing if name in listed))


HEAD, TAIL, MATCHING = 1_300, 1_300, 1_600
"""Characters that stay of a result that is stashed at birth."""


def stub_at_birth(text: str, what: str, recall: str, words: Iterable[str]) -> str:
    """Return what a view gets in place of a result that is too large for it.

    Args:
        text: the result, which is in the stash.
        what: what it is, in a few words.
        recall: the call that shows all of it.
        words: what its reader is likely to look for.
    """
    found = Excerpt(text)
    found.keep_ends(HEAD, TAIL)
    hidden = found.keep_matches(words, MATCHING)
    more = f", but {hidden} more match" if hidden else ""
    lines = text.count("\n") + 1
    head = moved_note(
        what,
        f"about {len(text) // 4}",
        f"{lines} lines are too many for the context; head, tail and matching lines stay{more}",
        recall=f'{recall}; for a part add lines=[first, last] or pattern="text"',
    )
    return f"{head}\n{found.written()}"


def first_lines(text: str, most: int, number: int | None = 1) -> str:
    """Return at most so many characters of an answer to a recall, and how to ask for the rest.

    Args:
        text: the answer.
        most: the characters that may be shown.
        number: that of its first line in what was recalled; None if lines are missing in between.
    """
    if len(text) <= most:
        return text
    pieces, ends = pieces_of(text)
    count = sum(1 for _ in fitting(pieces, lambda piece: len(piece) + 1, most))
    shown = "".join(piece + end for piece, end in zip(pieces[:count], ends[:count], strict=True))
    if number is None:
        said = "cut here; ask for lines=[first, last], or with a longer pattern"
    else:
        following = number + shown.count("\n")
        last = following - shown.endswith("\n")
        said = f"cut after line {last}; ask for later lines with lines=[{following}, ...]"
    between = "" if not shown or shown.endswith("\n") else "\n"
    return f"{shown}{between}{note(said)}"
