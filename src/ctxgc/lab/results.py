"""Results: counts of one run under one policy, and shares of many with confidence intervals."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import msgspec

# -- Figures with confidence intervals


_DRAWS = 1_000
_SEED = 20_261_116


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A share with the bounds of its 95% confidence interval; `of` is the whole."""

    value: float
    low: float
    high: float
    of: float = 0.0

    def interval(self, form: str, between: str, scale: float = 1.0) -> str:
        """Return both bounds in a format, such as `.2f`; nothing where all draws agree, as of one group."""
        bounds = (self.low, self.high) if self.low < self.high else ()
        return between.join(f"{bound * scale:{form}}" for bound in bounds)


class Bootstrap:
    """A bootstrap over groups, with the same draws for every figure.

    Runs of one group are not independent, so whole groups are drawn.
    """

    def __init__(self, groups: Sequence[str]) -> None:
        names = sorted(set(groups))
        place = {name: number for number, name in enumerate(names)}
        self._place = [place[group] for group in groups]
        self._size = len(names)
        chance = random.Random(_SEED)  # noqa: S311 - reproducible, not secret
        self._draws = [chance.choices(range(self._size), k=self._size) for _ in range(_DRAWS)]

    def share(self, parts: Iterable[float], wholes: Iterable[float], empty: float = 1.0) -> Figure:
        """Return the sum of the parts over the sum of the wholes; `empty` if that is 0."""
        part, whole = self._by_group(parts), self._by_group(wholes)
        total = sum(whole)
        value = sum(part) / total if total else empty
        drawn = sorted(_shares(part, whole, self._draws)) or [value]
        return Figure(value=value, low=_at(drawn, 0.025), high=_at(drawn, 0.975), of=total)

    def _by_group(self, values: Iterable[float]) -> list[float]:
        sums = [0.0] * self._size
        for place, value in zip(self._place, values, strict=True):
            sums[place] += value
        return sums


def _shares(part: list[float], whole: list[float], draws: list[list[int]]) -> Iterable[float]:
    of_part, of_whole = part.__getitem__, whole.__getitem__
    for draw in draws:
        total = sum(map(of_whole, draw))
        if total:
            yield sum(map(of_part, draw)) / total


def _at(ordered: list[float], share: float) -> float:
    """Return the quantile of ordered values."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def quantile(values: Iterable[float], share: float) -> float:
    """Return the value below which this share of the values lies; 0 if there are none."""
    ordered = sorted(values)
    return _at(ordered, share) if ordered else 0.0


# -- Counts of one run under one policy


class SurvivalCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many pieces of evidence are in the view, behind a handle, and lost."""

    view: int = 0
    handle: int = 0
    lost: int = 0

    @property
    def whole(self) -> int:
        """How many came in."""
        return self.view + self.handle + self.lost


class RunSurvival(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the evidence of one run under one policy, by kind.

    `at_collections` sums over the requests that changed what had been sent. `by_host` is what the host's
    own compaction left of it, where the run was recorded with one. `tokens` is the size of the last view.
    """

    at_end: dict[str, SurvivalCount] = {}
    at_collections: dict[str, SurvivalCount] = {}
    by_host: dict[str, SurvivalCount] = {}
    tokens: int = 0
    host_tokens: int = 0


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one run under one policy; shares are made from sums over many runs.

    A step is a request whose answer has at least one need. `bill` and `unpruned` are in uncached
    input tokens; `prefix` is what 15,000 constant tokens before each request would add to both.
    `bits` are those of the answers of `bits_steps` requests, compressed with the view as dictionary,
    `bits_whole` and `bits_bare` with the whole history and with a bare view. `error` says why a policy
    could not play the run; the counts are zero then.
    """

    run: str
    group: str
    source: str
    policy: str
    limit: int
    tokens: int
    messages: int
    requests: int
    unpruned: float
    prefix: float = 0.0

    bill: float = 0.0
    sent: int = 0
    cached: int = 0
    peak: int = 0

    steps: int = 0
    strict: int = 0
    clean: int = 0
    needs: int = 0
    resident: int = 0
    wide: int = 0
    named: int = 0
    recallable: int = 0
    lost: int = 0

    line_steps: int = 0
    line_steps_kept: int = 0
    lines: int = 0
    lines_kept: int = 0
    words: int = 0
    words_kept: int = 0
    newest: int = 0
    newest_shown: int = 0

    bits_steps: int = 0
    bits: int = 0
    bits_whole: int = 0
    bits_bare: int = 0

    refused: int = 0
    rules: dict[str, int] = {}
    over: int = 0
    over_excused: int = 0
    breaks: int = 0
    counts: dict[str, float] = {}
    survival: RunSurvival | None = None

    error: str = ""
    seconds: tuple[tuple[int, float], ...] = ()

    @property
    def ratio(self) -> float:
        """The bill as a share of never pruning."""
        return self.bill / self.unpruned if self.unpruned else 1.0

    @property
    def collections(self) -> float | None:
        """The collections that the policy says it made."""
        return self.counts.get("collections")

    @property
    def report_error(self) -> float | None:
        """How far its own report is from the replayed bill, as a share of that; None without a report.

        If the window is larger than the run, the savings are compared, else the bill: in a small
        window a policy may count only what would have fitted. A run with `overflows` is not compared:
        the policy refused those requests and did not count them, while the replay continued.
        """
        paid, unpruned = self.counts.get("reported_bill"), self.counts.get("reported_unpruned_bill")
        if paid is None or not self.bill or self.counts.get("overflows"):
            return None
        off = paid - self.bill
        if unpruned is not None and self.limit >= self.tokens:
            off = (unpruned - paid) - (self.unpruned - self.bill)
        return abs(off) / self.bill
