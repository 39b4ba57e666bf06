"""The demo's session, and its two phases: fill the window and collect once, then step by step."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from ctxgc.collector import (
    Analysis,
    Collection,
    GCEngine,
    Hop,
)
from ctxgc.core import (
    ContextSegment,
    EngineOptions,
    GCState,
    Heap,
    Ledger,
    PruningCandidate,
)
from ctxgc.testing import (
    FILE_ACCESS,
    AgentCall,
    AgentStep,
    ChatRendering,
    Script,
    instructions,
    seeded_project,
)
from ctxgc.tokens import ExactCounter

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
_STEP_TIME = timedelta(seconds=20)

_CODE = re.compile(r"\b(?:FRT-\d{4}|[0-9a-f]{10}|[0-9a-f]{8})\b")


def arrivals(count: int, seed: int = 7) -> Iterator[list[ContextSegment]]:
    """Yield about `count` segments in the order and the batches in which a host would add them.

    A batch is a message of the user, one of the agent with its tool calls, or the results of those.
    """
    for _, batches in _steps(count, seed):
        yield from batches


def messages(count: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """Yield the same session as the messages of a chat, as its agent would have recorded them."""
    chat = ChatRendering()
    for step, _ in _steps(count, seed):
        yield from chat.messages(step)


def _steps(count: int, seed: int) -> Iterator[tuple[AgentStep, list[list[ContextSegment]]]]:
    """Yield steps with their batches until there are enough and the next user message would come."""
    project, chance = seeded_project(seed)
    reader = _StepReader()
    system = AgentStep("system", instructions(project))
    yield system, list(reader.batches(system))
    for step in Script(project, chance).steps():
        batches = list(reader.batches(step))
        if reader.count > count and step.role == "user":
            return
        yield step, batches


class _StepReader:
    """Turns the steps of one session into segments and remembers what they refer to."""

    def __init__(self) -> None:
        self.count = 0
        self._steps = 0
        self._task: str | None = None
        self._request: str | None = None
        self._seen: dict[str, str] = {}

    def batches(self, step: AgentStep) -> Iterator[list[ContextSegment]]:
        self._steps += 1
        if step.role == "system":
            yield [self._segment(text=step.text, type="message", role="system", source="system")]
            return
        if step.role == "user":
            yield [self._ask(step.text)]
            return
        spoken = [self._say(step.text)] if step.text else []
        calls = [self._call(number, call) for number, call in enumerate(step.calls)]
        yield [*spoken, *calls]
        if calls:
            yield [self._result(number, call) for number, call in enumerate(step.calls)]

    def _ask(self, text: str) -> ContextSegment:
        codes = _codes(text)
        self._task = codes[0] if codes else self._task
        asked = self._segment(text=text, type="message", role="user", tags=codes)
        self._request = asked.segment_id
        return asked

    def _say(self, text: str) -> ContextSegment:
        return self._segment(
            text=text,
            type="decision" if text.startswith("Decision") else "message",
            role="assistant",
            tags=_codes(text),
            reply_to=self._request,
        )

    def _call(self, number: int, call: AgentCall) -> ContextSegment:
        return self._segment(
            text=json.dumps({"tool": call.name, **call.arguments}),
            type="message",
            role="assistant",
            part="tool_call",
            **self._bond(number),
        )

    def _result(self, number: int, call: AgentCall) -> ContextSegment:
        path: str | None = call.arguments.get("file_path")
        access = FILE_ACCESS.get(call.name, "run")
        based_on = self._seen.get(path or "") if access == "edit" else None
        result = self._segment(
            text=call.output,
            type="code" if access == "read" else "log",
            role="tool",
            part="tool_result",
            access=access,
            file_path=path,
            line_range=_line_range(call),
            command=None if path else " ".join([call.name, *map(str, call.arguments.values())]),
            failed=call.failed,
            references=(based_on,) if based_on else (),
            **self._bond(number),
        )
        if access == "read" and path is not None:
            self._seen[path] = result.segment_id
        return result

    def _bond(self, number: int) -> dict[str, Any]:
        return {"call_id": f"call-{self._steps}-{number}", "bond_id": f"batch-{self._steps}"}

    def _segment(self, **fields: Any) -> ContextSegment:
        self.count += 1
        return ContextSegment(
            segment_id=f"s{self.count}",
            message_id=f"m{self._steps}-{fields['role']}",
            task_id=self._task,
            created_at=START + self._steps * _STEP_TIME,
            **fields,
        )


def _codes(text: str) -> tuple[str, ...]:
    """Return the first ticket, request or commit that a text names: what it is about."""
    return tuple(_CODE.findall(text)[:1])


def _line_range(call: AgentCall) -> tuple[int, int] | None:
    """Return the lines that a call read; None for a whole file."""
    if "offset" not in call.arguments:
        return None
    first: int = call.arguments["offset"]
    return first, first + call.output.count("\n")


WINDOW = 64_000
_CHAINS = 3

Phase = Literal["fill", "steps"]
Watch = Callable[[int, int], None]


class WindowSample(msgspec.Struct, frozen=True):
    """The size of the window after one more batch and the engine's step."""

    segments: int
    tokens: int
    phase: Phase


class Removal(msgspec.Struct, frozen=True):
    """One segment that left: the kind of reason, the full reason, and how it left."""

    segment: ContextSegment
    because: str
    reason: str
    action: str
    freed: int
    phase: Phase


class Kept(msgspec.Struct, frozen=True):
    """One segment that stayed, with the chain of links from a root to it."""

    segment: ContextSegment
    chain: tuple[Hop, ...]


class DemoRun(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that happened in a session."""

    options: EngineOptions
    samples: list[WindowSample]
    full: Collection | None
    steps: list[Collection]
    departures: list[Removal]
    kept: list[Kept]
    ledger: Ledger
    roots: dict[str, int]

    @property
    def window(self) -> int:
        """The size of the window, in tokens."""
        return self.options.context_limit or 0


def run(segments: int = 1_000, seed: int = 7, *, watch: Watch | None = None) -> DemoRun:
    """Feed a session of this length to an engine and return what happened.

    Nothing is collected until the hard limit; then one full collection runs; from then on a small step
    follows each batch. `watch` is called after each batch with the segments so far and the tokens now.
    """
    recorder = _DemoRecorder()
    for batch in arrivals(segments, seed):
        recorder.arrive(batch)
        if watch is not None:
            watch(recorder.heap.ledger.ingested.segments, recorder.heap.ledger.working.tokens)
    return recorder.finish()


class _DemoRecorder:
    """A heap, an engine, and a record of what they did."""

    def __init__(self) -> None:
        self.engine = GCEngine(EngineOptions(context_limit=WINDOW))
        self.heap = Heap(ExactCounter().count)
        self.samples: list[WindowSample] = []
        self.steps: list[Collection] = []
        self.departures: list[Removal] = []
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

    def finish(self) -> DemoRun:
        return DemoRun(
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
        hard = self.engine.options.limit(self.engine.options.hard_limit_percent)
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
                Removal(
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
        self.samples.append(WindowSample(ledger.ingested.segments, ledger.working.tokens, phase))


_SUPERSEDED = {
    "re-read": "superseded: the file was read again",
    "edited": "superseded: the file was edited",
    "re-run": "superseded: the command was run again",
    "identical": "superseded: the same output came again",
    "resolved": "superseded: the error was resolved",
}


def because(candidate: PruningCandidate, segment: ContextSegment) -> str:
    """Return the kind of reason why a segment leaves; the candidate has the full reason."""
    if candidate.reachable:
        return f"reachable, but its score is low: {candidate.action}"
    if segment.superseded_how is not None:
        return _SUPERSEDED.get(segment.superseded_how, "superseded")
    return f"unreachable: no root leads to this {segment.type}"


def _longest_ways(analysis: Analysis, heap: Heap) -> list[Kept]:
    """Return survivors with the longest chains, one for each rule that makes a root."""
    longest: dict[str, tuple[Hop, ...]] = {}
    for segment_id in analysis.marks.reached():
        if heap.get(segment_id).tier == "working":
            chain = analysis.chain(segment_id)
            if len(chain) > len(longest.get(chain[0].via, ())):
                longest[chain[0].via] = chain
    chosen = sorted(longest.values(), key=lambda chain: (-len(chain), chain[0].segment_id))
    return [Kept(heap.get(chain[-1].segment_id), chain) for chain in chosen[:_CHAINS]]
