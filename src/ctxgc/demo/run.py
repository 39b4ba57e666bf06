"""The two phases of the demo: fill the window and collect once, then keep it small step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from ctxgc.core.analysis import Analysis, Hop
from ctxgc.core.apply import Collection
from ctxgc.core.engine import GCEngine
from ctxgc.core.heap import Heap
from ctxgc.core.ledger import Ledger
from ctxgc.core.options import EngineOptions
from ctxgc.core.plan import PruningCandidate
from ctxgc.core.roots import GCState
from ctxgc.core.segment import ContextSegment
from ctxgc.demo.story import arrivals
from ctxgc.tokens import ExactCounter

WINDOW = 64_000
CHAINS = 3

Phase = Literal["fill", "steps"]
Watch = Callable[[int, int], None]


class Sample(msgspec.Struct, frozen=True):
    """The window after one more batch has arrived, and after what the engine did about it."""

    segments: int
    tokens: int
    phase: Phase


class Departure(msgspec.Struct, frozen=True):
    """One segment that left: why in a few words, why in full, and how it left."""

    segment: ContextSegment
    because: str
    reason: str
    action: str
    freed: int
    phase: Phase


class Kept(msgspec.Struct, frozen=True):
    """One segment that stayed, with the way from a root to it."""

    segment: ContextSegment
    chain: tuple[Hop, ...]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """All that happened in a session."""

    options: EngineOptions
    samples: list[Sample]
    full: Collection | None
    steps: list[Collection]
    departures: list[Departure]
    kept: list[Kept]
    ledger: Ledger
    roots: dict[str, int]

    @property
    def window(self) -> int:
        """The tokens that fit the window."""
        return self.options.context_limit or 0


def run(segments: int = 1_000, seed: int = 7, *, watch: Watch | None = None) -> Run:
    """Let a session of this length arrive at an engine, and return what happened.

    Until the hard limit nothing is collected; then one full collection runs; from there on a small
    step follows each arrival. `watch` hears of each arrival: the segments so far, the tokens now.
    """
    theatre = _Theatre()
    for batch in arrivals(segments, seed):
        theatre.arrive(batch)
        if watch is not None:
            watch(theatre.heap.ledger.ingested.segments, theatre.heap.ledger.working.tokens)
    return theatre.finish()


class _Theatre:
    """A heap, an engine, and notes of what they did."""

    def __init__(self) -> None:
        self.engine = GCEngine(EngineOptions(context_limit=WINDOW))
        self.heap = Heap(ExactCounter().count)
        self.samples: list[Sample] = []
        self.steps: list[Collection] = []
        self.departures: list[Departure] = []
        self.full: Collection | None = None
        self.kept: list[Kept] = []
        self.roots: dict[str, int] = {}

    def arrive(self, batch: list[ContextSegment]) -> None:
        self.heap.add_all(batch)
        last = batch[-1]
        state = GCState(heap=self.heap, now=last.created_at, current_task_id=last.task_id)
        phase: Phase = "fill" if self.full is None else "steps"
        if phase == "steps":
            self._step(state)
        self._sample(phase)
        if self._is_full() and self.full is None:
            self._collect(state)
            self._sample(phase)

    def finish(self) -> Run:
        return Run(
            options=self.engine.options,
            samples=self.samples,
            full=self.full,
            steps=self.steps,
            departures=self.departures,
            kept=self.kept,
            ledger=self.heap.ledger,
            roots=self.roots,
        )

    def _is_full(self) -> bool:
        hard = self.engine.options.limit(self.engine.options.hard_percent)
        return hard is not None and self.heap.ledger.working.tokens >= hard

    def _step(self, state: GCState) -> None:
        done = self.engine.step(state)
        if done is not None:
            self.steps.append(done)
            self._note(done, "steps")

    def _collect(self, state: GCState) -> None:
        analysis = self.engine.analyze(state)
        self.full = self.engine.collect(state)
        self._note(self.full, "fill")
        self.kept = _longest_ways(analysis, self.heap)
        for reasons in analysis.roots.reasons.values():
            for reason in reasons:
                self.roots[reason] = self.roots.get(reason, 0) + 1

    def _note(self, done: Collection, phase: Phase) -> None:
        for candidate in done.plan.candidates:
            segment = self.heap.get(candidate.segment_id)
            self.departures.append(
                Departure(
                    segment=segment,
                    because=because(candidate, segment),
                    reason=candidate.reason,
                    action=candidate.action,
                    freed=candidate.freed,
                    phase=phase,
                )
            )

    def _sample(self, phase: Phase) -> None:
        ledger = self.heap.ledger
        self.samples.append(Sample(ledger.ingested.segments, ledger.working.tokens, phase))


_SUPERSEDED = {
    "re-read": "superseded: the file was read again",
    "edited": "superseded: the file was edited",
    "re-run": "superseded: the command was run again",
    "identical": "superseded: the same output came again",
    "resolved": "superseded: the error was resolved",
}


def because(candidate: PruningCandidate, segment: ContextSegment) -> str:
    """Return the kind of reason for which a segment leaves; the reason in full is the candidate's."""
    if candidate.reachable:
        return f"reachable, but its score is low: {candidate.action}"
    if segment.superseded_how is not None:
        return _SUPERSEDED.get(segment.superseded_how, "superseded")
    return f"unreachable: no root leads to this {segment.type}"


def _longest_ways(analysis: Analysis, heap: Heap) -> list[Kept]:
    """Return survivors with the longest reason chains, one for each rule that holds a root."""
    longest: dict[str, tuple[Hop, ...]] = {}
    for segment_id in analysis.marks.reached():
        if heap.get(segment_id).tier == "working":
            chain = analysis.chain(segment_id)
            if len(chain) > len(longest.get(chain[0].via, ())):
                longest[chain[0].via] = chain
    chosen = sorted(longest.values(), key=lambda chain: (-len(chain), chain[0].segment_id))
    return [Kept(heap.get(chain[-1].segment_id), chain) for chain in chosen[:CHAINS]]
