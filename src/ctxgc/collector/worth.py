"""Worth: what of a text stands nowhere else in the view, and which of its lines are kept for that.

`Census` counts who holds which name, word and line, message by message; `Copies` knows where every long
line is shown. `Worth` weighs what a full window holds. A cover is the cheapest set of lines that hold what
nothing else holds: `cover` for one text, `Cover` for all results of a view at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ctxgc.collector.excerpt import cover_lines, fitting, listed_chars, take_best
from ctxgc.collector.presets import Preset, Shares, WindowConstants
from ctxgc.core import GAP, Names, Text, is_line, is_word, looks_like_ours, quotable, with_gaps

# -- The census: in how many messages of the view each name, word and line stands


class Holding:
    """What one message holds verbatim, and which names it lists bare."""

    __slots__ = ("keys", "listed", "names", "words")

    def __init__(
        self,
        names: frozenset[str],
        words: frozenset[str],
        keys: frozenset[str],
        listed: frozenset[str] = frozenset(),
    ) -> None:
        self.names = names
        self.words = words
        self.keys = keys
        self.listed = listed


class Census:
    """Counts holders; a message that changes leaves and enters again."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self.words: Counter[str] = Counter()
        self.keys: Counter[str] = Counter()
        self.listed: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        """How many messages ever held a name or a word, those that left included."""

    def copy(self) -> Census:
        """Return another census that counts the same now."""
        twin = Census()
        for name in ("names", "words", "keys", "listed", "seen"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def enter(self, holding: Holding, *, new: bool) -> None:
        """Count what a message holds; `new` when it came in from the host."""
        self.names.update(holding.names)
        self.words.update(holding.words)
        self.keys.update(holding.keys)
        self.listed.update(holding.listed)
        if new:
            self.seen.update(holding.names)
            self.seen.update(holding.words)

    def leave(self, holding: Holding) -> None:
        """Count it no longer."""
        _subtract(self.names, holding.names)
        _subtract(self.words, holding.words)
        _subtract(self.keys, holding.keys)
        _subtract(self.listed, holding.listed)


def whole(text: Text) -> Holding:
    """Return what a message holds that shows all of a text."""
    return Holding(text.names, text.words, text.line_keys)


def partly(text: Text, kept: Iterable[int], listed: Iterable[str] = ()) -> Holding:
    """Return what a message holds of which only some lines stay."""
    lines = list(kept)
    keys = {text.keys[line] for line in lines}
    keys.discard("")
    return Holding(
        frozenset[str]().union(*(text.line_names[line] for line in lines)),
        frozenset[str]().union(*(text.line_words[line] for line in lines)),
        frozenset(keys),
        frozenset(listed),
    )


def _subtract(counts: Counter[str], keys: frozenset[str]) -> None:
    for key in keys:
        counts[key] -= 1
        if counts[key] <= 0:
            del counts[key]


# -- Copies: lines of a new result that are in the view already need not be sent again


MARK_CHARS = 44
DATA_CHARS = 400
"""So long a run of lines is the same record in two texts; shorter ones say the same of different things."""
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
        shown = self._kept[source] = frozenset(kept)
        text = self._texts.get(source)
        # What is not shown must not take the place of what is.
        for line, key in enumerate(text.keys) if text is not None else ():
            if key and line not in shown and (source, line) in self._places.get(key, ()):
                self._places[key].remove((source, line))

    def forget(self, source: str) -> None:
        """A text is no longer shown."""
        text = self._texts.pop(source, None)
        self._kept.pop(source, None)
        for key in set(text.keys) - {""} if text is not None else ():
            left = [place for place in self._places.pop(key, ()) if place[0] != source]
            if left:
                self._places[key] = left

    def find(
        self, text: Text, how: Preset, own: str, *, is_data: bool = False
    ) -> list[CopiedLines]:
        """Return the runs of a new text that need not be sent; none unless they save enough.

        `own` is the source that the text itself is, so that it is not a copy of itself. A text stays as it is
        if a line that looks like ours would be among marks of ours. `is_data` says that its lines are about
        something that other texts are not about.
        """
        if is_data:
            how = replace(how, copy_chars=max(how.copy_chars, DATA_CHARS))
        runs = self._runs(text, how, own)
        gone = {n for run in runs for n in range(run.first, run.last)}
        won = sum(map(text.cost, gone)) - MARK_CHARS * len(runs)
        if not runs or won < how.copy_saving * text.size:
            return []
        rest = [n for n in range(len(text.lines)) if n not in gone]
        return runs if len(rest) == len(list(quotable(text.lines, rest))) else []

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


# -- Worth: how likely it is that something in a view is needed again


_HEX = re.compile(r"[0-9a-f]{8,}|[0-9A-F]{8,}")
_UNIT = 1_000_000
"""Worth is a whole number, so that sums do not depend on the order of a set."""


class Worth:
    """Counts who holds what, message by message, and weighs it.

    Names count by how often they were seen and whether the agent used them, lines by who said them;
    everything counts less the longer ago it was seen. `messages` is how many there are.
    """

    def __init__(self, messages: int, how: WindowConstants) -> None:
        self._how = how
        self._holders: Counter[str] = Counter()
        self._last: dict[str, int] = {}
        self._used: set[str] = set()
        rated = {how.agent_line, how.view_line, how.digest_line}
        self._lines: dict[float, set[str]] = {worth: set() for worth in sorted(rated, reverse=True)}
        self._known: dict[str, int] = {}
        self._favour: dict[str, float] = {}
        self._messages = messages

    def see(self, place: int, held: Sequence[frozenset[str]], *, by_agent: bool = False) -> None:
        """Take note of what the parts of a message hold; the messages come in their order."""
        found = held[0] if len(held) == 1 else frozenset[str]().union(*held)
        self._holders.update(found)
        self._last.update(dict.fromkeys(found, place))
        if by_agent:
            self._used |= found

    def rate_lines(self, lines: Iterable[str], worth: float) -> None:
        """Take note of what some lines are worth; the highest counts."""
        if worth != self._how.other_line:
            self._lines[worth].update(lines)

    def favour(self, things: Iterable[str], ghost: float) -> None:
        """Let things count for more, since the like of what holds them was recalled."""
        for thing in things:
            self._favour[thing] = max(ghost, self._favour.get(thing, 0.0))

    def of_values(self, text: Text, place: int, asked: frozenset[str]) -> dict[int, int]:
        """Return what the lines of a text are worth that say a value; requests name the things in `asked`."""
        if not text.value_lines:
            return {}
        usual = _UNIT * self._how.value_line / (self._messages - place) ** self._how.fast
        if asked.isdisjoint(text.names) and asked.isdisjoint(text.words):
            return dict.fromkeys(text.value_lines, round(usual))
        most = max(usual, _UNIT * self._how.asked)
        names, words = text.line_names, text.line_words
        return {
            n: round(usual if asked.isdisjoint(names[n]) and asked.isdisjoint(words[n]) else most)
            for n in text.value_lines
        }

    @property
    def least_rate(self) -> float:
        """The worth per token below which a line is not kept."""
        return _UNIT * self._how.least_rate

    def of(self, thing: str) -> int:
        """Return the worth of something in the view."""
        known = self._known.get(thing)
        if known is None:
            favour = 1 + self._favour.get(thing, 0.0)
            known = self._known[thing] = round(_UNIT * self._weigh(thing) * favour)
        return known

    def _weigh(self, thing: str) -> float:
        age = self._messages - self._last[thing]
        holders, how = self._holders[thing], self._how
        if is_line(thing):
            worth = self._line_worth(thing)
            fading = how.slow if worth == how.agent_line else how.fast
            return float(worth * holders**how.often / age**fading)
        if is_word(thing):
            return float(how.word_worth / age**how.slow) if holders <= how.rare_word else 0.0
        worth = how.hex_worth if _HEX.fullmatch(thing) else 1.0
        worth *= 1 + how.used_by_agent if thing in self._used else 1
        return float(worth * holders**how.often / age**how.slow)

    def _line_worth(self, line: str) -> float:
        for worth, lines in self._lines.items():
            if line in lines:
                return worth
        return self._how.other_line


# -- The cover: the cheapest lines of a text that hold what nothing else in the view holds


CHARS_PER_TOKEN = 4
_LINE_OVERHEAD = 2
_RARE_WORD = 3
_CALL = re.compile(r"\[ctxgc.*?(?:; |To see it again: )(.*)\]")
_NAME = 100
_PATH = 200
_VALUE = 99
"""Weights are whole numbers, so that sums do not depend on the order of a set."""


class PriceCover(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a text that stay, the names that are listed bare, and the characters of both."""

    kept: tuple[int, ...]
    listed: tuple[str, ...]
    chars: int

    @property
    def listed_chars(self) -> int:
        """The characters of the bare names."""
        return sum(map(listed_chars, self.listed))


def cover(
    text: Text, lines: Iterable[int], shares: Shares, *, census: Census, how: Preset, size: int,
    values: bool = False,
) -> PriceCover:  # fmt: skip
    """Return what stays of a text that leaves a view.

    Args:
        text: the text.
        lines: those of its lines that are shown now.
        shares: how much of it may stay.
        census: who else holds what.
        how: the constants.
        size: the characters that the shares are shares of.
        values: whether lines count for the values that they say, which mean something else in another text.
    """
    wanted, weights = _wanted(text, lines, census, how)
    for line in filter(text.has_value, quotable(text.lines, lines)) if values else ():
        value = f"\t{line}"
        weights[value] = _VALUE
        wanted[line] = wanted.get(line, set()) | {value}
    kept, held, chars = cover_lines(
        wanted,
        weights.__getitem__,
        lambda line: text.cost(line) + _LINE_OVERHEAD,
        shares.lines * size,
        how.floor * _NAME / CHARS_PER_TOKEN,
    )
    missing = [n for n in weights if weights[n] >= _NAME and n not in held and not census.listed[n]]
    # Paths come first, then names that were in one message only, then short ones.
    missing.sort(key=lambda name: ("/" not in name, census.seen[name] > 1, len(name), name))
    listed = tuple(fitting(missing, listed_chars, max(how.least_names, shares.names * size)))
    used = int(chars) + sum(map(listed_chars, listed))
    return PriceCover(kept=tuple(kept), listed=listed, chars=used)


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
    quoted = quotable(text.lines, lines)
    found = ((n, names & text.line_names[n] | words & text.line_words[n]) for n in quoted)
    wanted = {line: own for line, own in found if own}
    weights = dict.fromkeys(set[str]().union(*wanted.values()), round(_NAME * how.word_weight))
    weights |= {name: _PATH if "/" in name else _NAME for name in weights.keys() & names}
    return wanted, weights


# -- The cover of a window: the lines, out of all results, that hold most of what is needed per token


GAP_TOKENS = 1.5
OPENING_TOKENS = 3.0

_TOKENS_PER_CHAR = 0.27
_NAME_TOKENS = 0.5


def _called(text: Text) -> frozenset[str]:
    """Return the names in the calls that notes of ours tell the reader to make: they are not its own."""
    ours = filter(looks_like_ours, text.lines)
    return Names().of("\n".join(call for line in ours for call in _CALL.findall(line)))


def _name_tokens(name: str) -> float:
    return len(name) * _TOKENS_PER_CHAR + _NAME_TOKENS


class Passage:
    """A text of which only some lines and names stay.

    `most` limits the tokens of its lines, `most_names` those of its bare names; the lines of a dead
    one count for the names and words in them only. `values` are what lines of it are worth whatever else
    holds the same ones.
    """

    __slots__ = ("is_dead", "kept", "most", "most_names", "names", "per_char", "text", "values")

    def __init__(
        self, text: Text, *, tokens: int = 0, most: float = 1.0, names: float = 1.0,
        is_dead: bool = False,
    ) -> None:  # fmt: skip
        self.text = text
        self.is_dead = is_dead
        self.per_char = tokens / max(1, text.size) if tokens else _TOKENS_PER_CHAR
        size = tokens or text.size * _TOKENS_PER_CHAR
        self.most = most * size
        self.most_names = names * size
        self.kept: list[int] = []
        self.names: list[str] = []
        self.values: Mapping[int, int] = {}

    def cost(self, piece: int) -> float:
        """Return the tokens of a piece."""
        return (len(self.text.lines[piece]) + 1) * self.per_char + GAP_TOKENS

    @property
    def tokens(self) -> float:
        """The tokens of all that stays."""
        return sum(map(self.cost, self.kept)) + sum(map(_name_tokens, self.names))

    def excerpt(self) -> str:
        """Return what stays of the text."""
        lines = self.text.lines

        def between(first: int, following: int) -> str:
            return GAP if first and following < len(lines) else ""

        return with_gaps(lines, sorted(self.kept), between, self.text.ends)


Place = tuple[int, int]
"""A passage by its number, and a piece of it."""


class Pick(msgspec.Struct, frozen=True):
    """A piece that stays, and its tokens."""

    passage: Passage
    piece: int
    tokens: float


class Cover:
    """Chooses lines greedily; each thing counts once, and only if nothing that stays holds it.

    No line is kept whose worth per token is below `least_rate`.
    """

    def __init__(
        self, passages: Sequence[Passage], held: set[str], worth: Callable[[str], int],
        least_rate: float,
    ) -> None:  # fmt: skip
        self._passages = passages
        self._least_rate = least_rate
        self._worth = worth
        self._held = held
        self._taken: set[Place] = set()
        self._wanted = [self._wants(passage) for passage in passages]

    def choose(self, budget: float) -> list[Pick]:
        """Keep the best pieces that fit, and return them in the order in which they were chosen."""
        picks: list[Pick] = []

        def take(place: Place) -> Iterable[Place]:
            nonlocal budget
            cost = self._cost(place)
            if cost > budget or not self._fits(place):
                return ()
            budget -= cost
            return self._keep(place, cost, picks)

        places = ((number, piece) for number, own in enumerate(self._wanted) for piece in own)
        take_best(places, self._rate, take, self._least_rate)
        return picks

    def list_names(self, budget: float) -> None:
        """List the names bare that no line shows, the best per token first, while they fit."""
        holders = {
            name: passage
            for passage in self._passages
            for name in passage.text.names - self._held - _called(passage.text)
        }
        for name in sorted(holders, key=lambda n: (-self._worth(n) / (len(n) + 4), n)):
            passage = holders[name]
            cost = _name_tokens(name)
            if cost <= min(budget, passage.most_names):
                budget -= cost
                passage.most_names -= cost
                passage.names.append(name)

    def _wants(self, passage: Passage) -> dict[int, frozenset[str]]:
        """Return the things of each piece that would be gone without it."""
        found: dict[int, frozenset[str]] = {}
        text, held = passage.text, self._held
        missing = (text.names | text.words if passage.is_dead else text.things) - held
        values = passage.values
        for number, things in enumerate(text.line_things) if missing or values else ():
            wanted = things & missing
            if (wanted or number in values) and not looks_like_ours(text.lines[number]):
                found[number] = wanted
        return found

    def _rate(self, place: Place) -> float:
        if place in self._taken:
            return 0.0
        wanted = self._wanted[place[0]][place[1]]
        value = self._passages[place[0]].values.get(place[1], 0)
        return (value + sum(map(self._worth, wanted - self._held))) / self._cost(place)

    def _cost(self, place: Place) -> float:
        passage = self._passages[place[0]]
        return passage.cost(place[1]) + (0.0 if passage.kept else OPENING_TOKENS)

    def _fits(self, place: Place) -> bool:
        passage = self._passages[place[0]]
        return passage.cost(place[1]) <= passage.most

    def _keep(self, place: Place, cost: float, picks: list[Pick]) -> Iterable[Place]:
        number, piece = place
        passage = self._passages[number]
        passage.most -= passage.cost(piece)
        is_first = not passage.kept
        passage.kept.append(piece)
        self._taken.add(place)
        self._held.update(self._wanted[number][piece])
        picks.append(Pick(passage, piece, cost))
        # The others need not pay for the opening again: they are worth more than before.
        return [(number, other) for other in self._wanted[number]] if is_first else ()
