"""What a replay found: plain numbers, one record for each run and policy."""

from __future__ import annotations

import msgspec


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one run under one policy; shares are made of their sums over many runs.

    A step is a request whose answer has at least one need. `bill` and `unpruned` are in units of one
    plain input token. `error` says why a policy could not play the run; all else is then zero.
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

    refused: int = 0
    rules: dict[str, int] = {}
    over: int = 0
    over_excused: int = 0
    breaks: int = 0
    counts: dict[str, float] = {}

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
        """How far its own report is from the replayed bill, as a share of that; None without one.

        Where the window is larger than the run, the savings are compared, else the bill: there a
        policy may count what would really have fitted. A run with `overflows` is not compared: the
        policy refused those requests and did not book them, while the replay went on.
        """
        paid, unpruned = self.counts.get("reported_bill"), self.counts.get("reported_unpruned_bill")
        if paid is None or not self.bill or self.counts.get("overflows"):
            return None
        off = paid - self.bill
        if unpruned is not None and self.limit >= self.tokens:
            off = (unpruned - paid) - (self.unpruned - self.bill)
        return abs(off) / self.bill
