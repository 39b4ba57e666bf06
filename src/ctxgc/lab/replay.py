"""Replay: one run, request by request, through one policy."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import msgspec

from ctxgc.economics import PriceSheet
from ctxgc.lab.bits import AnswerBits
from ctxgc.lab.needs import Needs, RequestNeeds, SentMessage, ViewReader
from ctxgc.lab.policies import Player, Policy, PolicyTask
from ctxgc.lab.regimes import Regime
from ctxgc.lab.residency import Residency
from ctxgc.lab.results import RunResult
from ctxgc.lab.runs import Run
from ctxgc.lab.survival import SurvivalJudge
from ctxgc.testing import check_history

PREFIX_TOKENS = 15_000
"""System prompt and tool schemas of a real agent, which recorded runs mostly lack."""

# -- Price: every request, with a prompt cache that behaves as documented


class RunBill(msgspec.Struct, kw_only=True):
    """Sums over the requests so far; `cost` is in uncached input tokens.

    `prefix` is what a constant prefix of 15,000 tokens would add: it is written once, and again after
    each pause that the cache does not survive, and read otherwise.
    """

    cost: float = 0.0
    prefix: float = 0.0
    sent: int = 0
    cached: int = 0
    peak: int = 0
    requests: int = 0


class RequestPricer:
    """Prices one request after the other.

    The common prefix with the request before, byte for byte, is read from the cache; the rest is
    written. If the run has times, a pause longer than the life of the cache makes all of it written.
    """

    def __init__(self, sheet: PriceSheet, times: Sequence[float] | None = None) -> None:
        self.bill = RunBill()
        self._sheet = sheet
        self._times = times
        self._last: float | None = None

    def charge(self, view: Sequence[SentMessage], same: int, index: int) -> int:
        """Add the request that message `index` answers; return its size.

        `same` is the length of the prefix, in messages, that it shares with the one before.
        """
        sizes = [entry.tokens for entry in view]
        sent = sum(sizes)
        warm = self._is_warm(index)
        cached = sum(sizes[:same]) if warm else 0
        bill = self.bill
        is_read = warm and bill.requests
        bill.prefix += PREFIX_TOKENS * (self._sheet.read if is_read else self._sheet.write)
        bill.requests += 1
        bill.cost += self._sheet.read * cached + self._sheet.write * (sent - cached)
        bill.sent += sent
        bill.cached += cached
        bill.peak = max(bill.peak, sent)
        return sent

    def _is_warm(self, index: int) -> bool:
        if self._times is None:
            return True
        before, self._last = self._last, self._times[index]
        life = self._sheet.ttl_seconds
        return before is None or life is None or self._last - before <= life


def unpruned_bill(
    entries: Sequence[SentMessage],
    answers: Sequence[int],
    sheet: PriceSheet,
    times: Sequence[float] | None,
) -> RunBill:
    """Return what the run costs if every request carries the whole history before its answer."""
    pricer = RequestPricer(sheet, times)
    before = 0
    for index in answers:
        pricer.charge(entries[:index], before, index)
        before = index
    return pricer.bill


# -- Checks of each request: is it valid, does it fit, what of the newest results does it show


class _Validity:
    """Counts the requests whose history a provider would refuse, by the rule that they break.

    Rules that the recorded run itself breaks do not count against a policy.
    """

    def __init__(self, needs: Needs) -> None:
        self.refused = 0
        self.rules: Counter[str] = Counter()
        self._needs = needs
        self._broken: frozenset[str] = frozenset()
        self._read = 0

    def check(self, view: Sequence[SentMessage], same: int, before: int, index: int) -> None:
        """Check the view that message `index` answers; `before` messages were in the last one.

        If the last view is sent again with only the new messages after it, its verdict is kept:
        new messages of a valid run do not break an old view.
        """
        fresh = self._needs.entries[self._read : index]
        grown = same == before and list(view[same:]) == fresh
        self._read = index
        if not grown or not before:
            self._broken = _breaches([e.message for e in view]) - self._own
        self.refused += bool(self._broken)
        self.rules.update(self._broken)

    @cached_property
    def _own(self) -> frozenset[str]:
        return _breaches(self._needs.run.messages)


def _breaches(messages: list[dict[str, object]]) -> frozenset[str]:
    return frozenset(breach.rule for breach in check_history(messages, complete=False))


def _newest_facts(needs: Needs, step: RequestNeeds, view: Residency) -> tuple[int, int]:
    """Return how many facts the newest results hold, and how many of them the view shows.

    No answer has needed them yet, so without this an admission cut would look free.
    """
    whole = shown = 0
    for number in step.newest:
        facts = needs.entries[number].facts
        whole += len(facts)
        if view.is_whole(number):
            shown += len(facts)
        else:
            shown += sum(view.holds_fact(fact, step.index) for fact in facts)
    return whole, shown


def replay_run(
    policy: Policy,
    run: Run,
    regime: Regime,
    sheet: PriceSheet,
    *,
    needs: Needs | None = None,
    bits: AnswerBits | None = None,
    timing: bool = False,
    survival: bool = False,
) -> RunResult:
    """Return what a policy did to a run: its bill, and what was still in the view when it was used.

    Pass `needs` if several policies play the same run: it is read only once then. With `bits` (of the
    same needs) the result has the sizes of the answers too, with `timing` the seconds of each decision,
    which differ from run to run, and with `survival` what became of the evidence that came in.

    A policy that raises is not asked again; `error` of the result says why.
    """
    read = Needs(run) if needs is None else needs
    known = _known(policy, read, regime, sheet)
    try:
        play = _RunReplay(policy, read, known.limit, regime, sheet, bits=bits, survival=survival)
        found = play.play()
    except Exception as error:  # noqa: BLE001 - a policy may be anyone's code
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return msgspec.structs.replace(known, error=said[:300])
    return msgspec.structs.replace(known, **(found if timing else {**found, "seconds": ()}))


def _known(policy: Policy, needs: Needs, regime: Regime, sheet: PriceSheet) -> RunResult:
    """Return the result of a run before any policy played it."""
    run = needs.run
    answers = [step.index for step in needs.steps]
    whole = unpruned_bill(needs.entries, answers, sheet, run.times)
    return RunResult(
        run=run.id,
        group=run.group,
        source=run.source,
        policy=policy.name,
        limit=regime.limit(run.messages),
        tokens=sum(entry.tokens for entry in needs.entries),
        messages=len(run.messages),
        requests=len(answers),
        unpruned=whole.cost,
        prefix=whole.prefix,
    )


class _RunReplay:
    """The state of one replay."""

    def __init__(
        self,
        policy: Policy,
        needs: Needs,
        limit: int,
        regime: Regime,
        sheet: PriceSheet,
        *,
        bits: AnswerBits | None,
        survival: bool,
    ) -> None:
        # A policy gets its own copies: what it does to them must not reach the next policy.
        copied = msgspec.json.decode(msgspec.json.encode(needs.run.messages))
        self._history = copied
        task = PolicyTask(limit=limit, regime=regime.kind, sheet=sheet, run=needs.run)
        self._player: Player = policy.open(task)
        self._needs = needs
        self._bits = bits
        self._limit = limit
        self._lens = ViewReader(needs.library)
        self._view = Residency(needs)
        self._pricer = RequestPricer(sheet, needs.run.times)
        self._validity = _Validity(needs)
        self._survival = SurvivalJudge(needs, self._player) if survival else None
        self._count: Counter[str] = Counter()
        self._seconds: list[tuple[int, float]] = []
        self._sent = 0

    def play(self) -> dict[str, object]:
        """Play the run to its end; return the fields of the result."""
        for step in self._needs.steps:
            self._request(step, self._ask(step.index))
        bill = self._pricer.bill
        return {
            **self._count,
            "survival": self._survival and self._survival.result(),
            "bill": bill.cost,
            "sent": bill.sent,
            "cached": bill.cached,
            "peak": bill.peak,
            "refused": self._validity.refused,
            "rules": dict(sorted(self._validity.rules.items())),
            "counts": dict(sorted(self._player.counts().items())),
            "seconds": tuple(self._seconds),
        }

    def _ask(self, index: int) -> list[SentMessage]:
        history = self._history[:index]
        start = time.perf_counter()
        view = self._player.view(history)
        self._seconds.append((index, time.perf_counter() - start))
        return self._lens.read(view)

    def _request(self, step: RequestNeeds, view: list[SentMessage]) -> None:
        same = self._view.show(view)
        sent = self._pricer.charge(view, same, step.index)
        self._validity.check(view, same, self._sent, step.index)
        self._count["breaks"] += same < self._sent
        if self._survival:
            self._survival.request(view, step.index, changed=same < self._sent)
        self._sent = len(view)
        if sent > self._limit:
            least = sum(entry.tokens for entry in self._needs.bare(step.index))
            excused = least > self._limit
            self._count["over_excused" if excused else "over"] += 1
        self._judge_bits(step, view)
        self._judge_needs(step)
        self._judge_outside(step)

    def _judge_bits(self, step: RequestNeeds, view: list[SentMessage]) -> None:
        """Count what the answer costs with this view, with the whole history and with a bare view."""
        sizes = self._bits.sizes(view, step.index) if self._bits else None
        if sizes is not None:
            self._count.update(
                bits_steps=1, bits=sizes.view, bits_whole=sizes.whole, bits_bare=sizes.bare
            )

    def _judge_needs(self, step: RequestNeeds) -> None:
        """Count what became of each fact that the answer used."""
        if not step.needs:
            return
        recallable = self._player.is_recallable
        states = Counter(self._view.state(f, step.index, recallable) for f in step.needs)
        wide = sum(self._view.is_resident(f, step.index, "wide") for f in step.needs)
        whole, named = len(step.needs), states["named"]
        self._count.update(states)
        self._count.update(
            steps=1,
            needs=whole,
            wide=wide,
            strict=states["resident"] == whole,
            clean=states["resident"] + named == whole,
        )

    def _judge_outside(self, step: RequestNeeds) -> None:
        """Count what no policy aims to keep: quoted lines, rare words, the newest facts."""
        lines = sum(self._view.holds_line(line, step.index) for line in step.lines)
        words = sum(self._view.holds_word(word, step.index) for word in step.words)
        newest, shown = _newest_facts(self._needs, step, self._view)
        self._count.update(
            line_steps=bool(step.lines),
            line_steps_kept=bool(step.lines) and lines == len(step.lines),
            lines=len(step.lines),
            lines_kept=lines,
            words=len(step.words),
            words_kept=words,
            newest=newest,
            newest_shown=shown,
        )
