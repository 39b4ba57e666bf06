"""Replay: one run, request by request, through one policy."""

from __future__ import annotations

import time
from collections import Counter

import msgspec

from ctxgc.economics import PriceSheet
from ctxgc.lab.bill import Till, unpruned_bill
from ctxgc.lab.checks import Validity, last_unit_tokens, newest_facts
from ctxgc.lab.entries import Entry, Lens
from ctxgc.lab.needs import Needs, Step
from ctxgc.lab.policies import Player, Policy, Task
from ctxgc.lab.regimes import Regime
from ctxgc.lab.residency import Residency
from ctxgc.lab.result import RunResult
from ctxgc.lab.runs import Run


def replay(
    policy: Policy,
    run: Run,
    regime: Regime,
    sheet: PriceSheet,
    *,
    needs: Needs | None = None,
    timing: bool = False,
) -> RunResult:
    """Return what a policy did to a run: its bill, and what was still there when it was used.

    `needs`, where several policies play the same run, saves reading it again. With `timing` the
    result has the seconds of each decision, which are never the same twice.

    A policy that raises is not asked again; the result says why.
    """
    read = Needs(run) if needs is None else needs
    known = _known(policy, read, regime, sheet)
    try:
        found = _Replay(policy, read, known.limit, regime, sheet).play()
    except Exception as error:  # noqa: BLE001 - a policy is other people's code
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return msgspec.structs.replace(known, error=said[:300])
    return msgspec.structs.replace(known, **(found if timing else {**found, "seconds": ()}))


def _known(policy: Policy, needs: Needs, regime: Regime, sheet: PriceSheet) -> RunResult:
    """Return the record of a run before any policy played it."""
    run = needs.run
    answers = [step.index for step in needs.steps]
    return RunResult(
        run=run.id,
        group=run.group,
        source=run.source,
        policy=policy.name,
        limit=regime.limit(run.messages),
        tokens=sum(entry.tokens for entry in needs.entries),
        messages=len(run.messages),
        requests=len(answers),
        unpruned=unpruned_bill(needs.entries, answers, sheet, run.times).cost,
    )


class _Replay:
    """The state of one replay."""

    def __init__(
        self, policy: Policy, needs: Needs, limit: int, regime: Regime, sheet: PriceSheet
    ) -> None:
        # A policy gets messages of its own: what it does to them does not reach the next one.
        copied = msgspec.json.decode(msgspec.json.encode(needs.run.messages))
        self._history = copied
        task = Task(limit=limit, regime=regime.kind, sheet=sheet, run=needs.run)
        self._player: Player = policy.open(task)
        self._needs = needs
        self._limit = limit
        self._lens = Lens(needs.library)
        self._view = Residency(needs)
        self._till = Till(sheet, needs.run.times)
        self._validity = Validity(needs)
        self._count: Counter[str] = Counter()
        self._seconds: list[tuple[int, float]] = []
        self._sent = 0

    def play(self) -> dict[str, object]:
        """Play the run to its end; return the fields of the result."""
        for step in self._needs.steps:
            self._request(step, self._ask(step.index))
        bill = self._till.bill
        return {
            **self._count,
            "bill": bill.cost,
            "sent": bill.sent,
            "cached": bill.cached,
            "peak": bill.peak,
            "refused": self._validity.refused,
            "rules": dict(sorted(self._validity.rules.items())),
            "counts": dict(sorted(self._player.counts().items())),
            "seconds": tuple(self._seconds),
        }

    def _ask(self, index: int) -> list[Entry]:
        history = self._history[:index]
        start = time.perf_counter()
        view = self._player.view(history)
        self._seconds.append((index, time.perf_counter() - start))
        return self._lens.read(view)

    def _request(self, step: Step, view: list[Entry]) -> None:
        same = self._view.show(view)
        sent = self._till.charge(view, same, step.index)
        self._validity.check(view, same, self._sent, step.index)
        self._count["breaks"] += same < self._sent
        self._sent = len(view)
        if sent > self._limit:
            excused = last_unit_tokens(self._needs, step.index) > self._limit
            self._count["over_excused" if excused else "over"] += 1
        self._judge_needs(step)
        self._judge_outside(step)

    def _judge_needs(self, step: Step) -> None:
        """Say what became of each fact that the answer used."""
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

    def _judge_outside(self, step: Step) -> None:
        """Count what no policy is told to keep: quoted lines, rare words, the newest facts."""
        lines = sum(self._view.holds_line(line, step.index) for line in step.lines)
        words = sum(self._view.holds_word(word, step.index) for word in step.words)
        newest, shown = newest_facts(self._needs, step, self._view)
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
