"""Metrics: what passed through, and what it saved against what the agents would have sent.

Savings are those of the sessions' own ledgers, which compare each request with the one that would have been
sent had nothing ever been collected: a text that left is not counted once per request.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from ctxgc.proxy.cache_watch import CacheMiss
from ctxgc.session import Session

Arm = Literal["collected", "observed"]
"""Requests that go out with their view, and those that are only measured."""


class ProxyLedger(msgspec.Struct, frozen=True, kw_only=True):
    """What requests cost and would have cost; bills are in units of one plain input token."""

    requests: int = 0
    collections: int = 0
    sent_tokens: int = 0
    counterfactual_tokens: int = 0
    bill: float = 0.0
    counterfactual_bill: float = 0.0

    @classmethod
    def of(cls, session: Session) -> ProxyLedger:
        """Return what a session has booked so far."""
        sums = session.inspect().state.savings.savings
        booked = {name: getattr(sums, name, 0) for name in cls.__struct_fields__}
        done = sum(each.success for each in session.gc_history)
        return cls(**{**booked, "collections": done})

    def plus(self, other: ProxyLedger, sign: int = 1) -> ProxyLedger:
        """Return the sums, or with -1 the differences, of two ledgers."""
        names = self.__struct_fields__
        return ProxyLedger(**{n: getattr(self, n) + sign * getattr(other, n) for n in names})

    @property
    def saved_percent(self) -> float:
        """How much lower the bill is than it would have been, in percent; negative if it is higher."""
        if not self.counterfactual_bill:
            return 0.0
        return 100.0 * (1 - self.bill / self.counterfactual_bill)


class ProxyMetrics:
    """Counts what passes through; several threads may."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._answers: Counter[tuple[str, str]] = Counter()
        self._retries = 0
        self._recalls = 0
        self._misses: Counter[tuple[str, str]] = Counter()
        self._missed: Counter[tuple[str, str]] = Counter()
        self._input: Counter[str] = Counter()
        self._lines: dict[tuple[str, Arm], tuple[ProxyLedger, ProxyLedger]] = {}

    def note_request(self, form: str, outcome: str) -> None:
        """Count a request and what became of it."""
        with self._lock:
            self._outcomes[form, outcome] += 1

    def note_answer(self, provider: str, status: int) -> None:
        """Count an answer."""
        with self._lock:
            self._answers[provider, str(status)] += 1

    def note_retry(self) -> None:
        """Count a request that was sent again because it was too long."""
        with self._lock:
            self._retries += 1

    def note_miss(self, miss: CacheMiss) -> None:
        """Count tokens that the provider's cache had not kept."""
        key = (miss.cause, "ctxgc" if miss.by_ctxgc else "others")
        with self._lock:
            self._misses[key] += 1
            self._missed[key] += miss.tokens

    def note_recalls(self, count: int) -> None:
        """Count calls of our tools that were answered inside the loop."""
        with self._lock:
            self._recalls += count

    def note_input(self, arm: Arm, tokens: int) -> None:
        """Count the input tokens that a provider reports."""
        with self._lock:
            self._input[arm] += tokens

    def note_session(self, name: str, arm: Arm, before: ProxyLedger, now: ProxyLedger) -> None:
        """Note what a session has booked, and what it had before its first request here."""
        with self._lock:
            first, _ = self._lines.get((name, arm), (before, before))
            self._lines[name, arm] = (first, now)

    def ledger(self, arm: Arm) -> ProxyLedger:
        """Return what all sessions of this process have booked since it started."""
        with self._lock:
            found = [
                now.plus(first, -1) for (_, a), (first, now) in self._lines.items() if a == arm
            ]
        total = ProxyLedger()
        for each in found:
            total = total.plus(each)
        return total

    def summary(self) -> str:
        """Return in one line what was saved, or what would have been."""
        done, seen = self.ledger("collected"), self.ledger("observed")
        said = [_said(done, "")] if done.requests or not seen.requests else []
        return "; ".join([*said, *([_said(seen, "would have been ")] if seen.requests else [])])

    def text(self) -> str:
        """Return all metrics as Prometheus reads them."""
        with self._lock:
            outcomes = [({"format": f, "outcome": o}, n) for (f, o), n in self._outcomes.items()]
            answers = [({"provider": p, "status": s}, n) for (p, s), n in self._answers.items()]
            counted = [({"arm": arm}, tokens) for arm, tokens in self._input.items()]
            misses, missed = (
                [({"cause": cause, "by": by}, n) for (cause, by), n in counts.items()]
                for counts in (self._misses, self._missed)
            )
            recalls = self._recalls
            retries, lines = self._retries, Counter(arm for _, arm in self._lines)
        parts = [
            metric("requests_total", "counter", "Requests with a history.", outcomes),
            metric("answers_total", "counter", "Answers of providers to them.", answers),
            metric(
                "overflow_retries_total", "counter", "Requests sent again smaller.", [({}, retries)]
            ),
            metric("recalls_total", "counter", "Calls of our tools answered.", [({}, recalls)]),
            metric(
                "input_tokens_total", "counter", "Input tokens as providers report them.", counted
            ),
            metric(
                "sessions", "gauge", "Sessions seen.", [({"arm": a}, n) for a, n in lines.items()]
            ),
        ]
        for name, said, counts in (
            ("cache_misses_total", "Requests whose cached prefix was not given back.", misses),
            ("cache_missed_tokens_total", "Tokens that were written again.", missed),
        ):
            parts.append(metric(name, "counter", said, counts))
        ledgers: dict[Arm, ProxyLedger] = {
            "collected": self.ledger("collected"),
            "observed": self.ledger("observed"),
        }
        for name, kind, said in _BOOKED:
            values = [({"arm": arm}, getattr(ledger, name)) for arm, ledger in ledgers.items()]
            parts.append(metric(f"session_{name}", kind, said, values))
        return "".join(parts)


_BOOKED = (
    ("requests", "counter", "Requests booked by sessions."),
    ("collections", "counter", "Collections."),
    ("sent_tokens", "counter", "Tokens of the views; with arm=observed what they would have been."),
    ("counterfactual_tokens", "counter", "Tokens had nothing ever been collected."),
    ("bill", "counter", "Input bill of the views, in plain input tokens."),
    ("counterfactual_bill", "counter", "Input bill had nothing ever been collected."),
)


def metric(
    name: str, kind: str, said: str, values: Iterable[tuple[Mapping[str, str], float]]
) -> str:
    """Return a metric with its values as Prometheus reads them."""
    full = f"ctxgc_proxy_{name}"
    lines = [f"# HELP {full} {said}", f"# TYPE {full} {kind}"]
    for labels, value in values:
        shown = ",".join(f'{key}="{each}"' for key, each in labels.items())
        lines.append(f"{full}{{{shown}}} {value:.15g}" if shown else f"{full} {value:.15g}")
    return "\n".join(lines) + "\n"


def _said(ledger: ProxyLedger, would: str) -> str:
    times = "time" if ledger.collections == 1 else "times"
    return (
        f"{ledger.requests:,} requests, collected {ledger.collections:,} {times}: {ledger.sent_tokens:,} of "
        f"{ledger.counterfactual_tokens:,} tokens {would or 'were '}sent, "
        f"{ledger.saved_percent:.1f}% of the input bill {would or ''}saved"
    )
