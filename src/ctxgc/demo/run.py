"""The demo's session: a scripted agent at work in a real `Session`, and a record of what leaves and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxgc.collector import Analysis, GCResult, GCTriggerReason, analyze
from ctxgc.core import ContextSegment, EngineOptions, Evidence, Ledger, PruningPlan
from ctxgc.economics import Savings
from ctxgc.session import Session, validate
from ctxgc.testing import AgentStep, ChatRendering, Script, instructions, seeded_project

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ROOM_WINDOW, PRICE_WINDOW = 64_000, 200_000
"""In the first window room must be made; in the second nothing has to leave, and only what pays does."""
_PRICES = "anthropic-5m"
_STEP_TIME = timedelta(seconds=10)
_HANDLE = re.compile(r'handle="([^"]+)"')

Watch = Callable[[int, int, float], None]
"""Called before each request with the window's size, the messages so far, and how full it is."""


def messages(count: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """Yield a session of about `count` segments as the messages of a chat; it ends with an answer."""
    project, chance = seeded_project(seed)
    chat, segments = ChatRendering(), 1
    yield from chat.messages(AgentStep("system", instructions(project)))
    for step in Script(project, chance).steps():
        segments += bool(step.text) + 2 * len(step.calls)
        if segments > count and step.role == "user":
            return
        yield from chat.messages(step)


class Liveness(msgspec.Struct, frozen=True):
    """The segments of a view: the roots by their rule, those that roots reach, and the others."""

    segments: int
    roots: dict[str, tuple[int, int]]
    rooted: int
    reached: int
    superseded: int

    @classmethod
    def of(cls, analysis: Analysis) -> Liveness:
        """Return the liveness that an analysis found."""
        working = [s for s in analysis.state.heap if s.tier == "working"]
        dead = [s for s in working if not analysis.is_reachable(s.segment_id)]
        tally: dict[str, tuple[int, int]] = {}
        for segment in working:
            for rule in analysis.roots.why(segment.segment_id):
                count, tokens = tally.get(rule, (0, 0))
                tally[rule] = count + 1, tokens + (segment.tokens or 0)
        return cls(
            segments=len(working),
            roots=tally,
            rooted=sum(segment.segment_id in analysis.roots for segment in working),
            reached=len(working) - len(dead) - len(analysis.roots),
            superseded=sum(segment.superseded_by is not None for segment in dead),
        )


class PlannedEntry(msgspec.Struct, frozen=True):
    """One entry of the plan: the segment, the evidence against it, and what was left in its place."""

    segment: ContextSegment
    evidence: Evidence
    stub: str


class FirstCollection(msgspec.Struct, frozen=True, kw_only=True):
    """The first time that the window is full to the soft limit: what was known, planned and done."""

    request: int
    target: int
    liveness: Liveness
    plan: PruningPlan
    entries: list[PlannedEntry]
    result: GCResult
    violations: int
    must_stay: int
    lost: int


class Recalled(msgspec.Struct, frozen=True):
    """A segment brought back by the handle in its tombstone, and whether it is as it came."""

    handle: str
    tokens: int
    is_same: bool


class Play(msgspec.Struct, frozen=True, kw_only=True):
    """A whole session in one window."""

    window: int
    soft_limit: int
    threshold: int
    target: int
    messages: int
    fills: list[float]
    results: list[GCResult]
    first: FirstCollection | None
    recalled: Recalled | None
    savings: Savings
    ledger: Ledger
    deleted_of_session: int

    @property
    def by_itself(self) -> list[GCResult]:
        """The collections that nobody asked for."""
        return [r for r in self.results if r.trigger_reason is not GCTriggerReason.MANUAL]

    def departures(self) -> Iterator[tuple[Evidence, int]]:
        """Yield the evidence, and the tokens won, of all that left in collections that nobody asked for.

        Old notes of the collector itself are not meant.
        """
        for result in self.by_itself:
            for item in result.removal_list:
                if item.evidence is not None and item.evidence.kind != "notice":
                    yield item.evidence, item.tokens_freed


def play(window: int, segments: int = 1_000, seed: int = 7, watch: Watch | None = None) -> Play:
    """Run the session in a window of this size and return what happened.

    One collection for room is asked for by hand, at the soft limit, so that its plan can be seen before it
    is applied. Besides that the session decides by itself before each request.
    """
    recorder = _Recorder(window)
    with recorder.session:
        for message in messages(segments, seed):
            if message["role"] == "assistant":
                recorder.request()
                if watch is not None:
                    watch(window, len(recorder.came), recorder.fills[-1])
            recorder.append(message)
        return recorder.finish()


class _Recorder:
    """A session, and a record of what it did."""

    def __init__(self, window: int) -> None:
        self._now = START
        self.session = Session(
            window, store="memory:", prices=_PRICES, clock=lambda: self._now, handle_key=b"demo"
        )
        self.session.tools()  # the agent's model can recall
        self.came: list[dict[str, Any]] = []
        self.fills: list[float] = []
        self._ids: list[str] = []
        self._first: FirstCollection | None = None

    def append(self, message: dict[str, Any]) -> None:
        self._ids += self.session.append(message)
        self.came.append(message)
        self._now += _STEP_TIME

    def request(self) -> None:
        """Have the session prepare a request, as an agent's loop does."""
        usage = self.session.usage()
        self.fills.append(usage.percent_used)
        if self._first is None and usage.percent_used >= self.session.config.soft_limit_percent:
            self._first = self._collect()
        self.session.messages()

    def _collect(self) -> FirstCollection:
        session, inside = self.session, self.session.inspect()
        target, must_stay = session.usage().target_tokens, inside.protected.reasons()
        liveness = Liveness.of(analyze(inside.host.gc_state(session.history), EngineOptions()))
        before = {m.message_id: m for m in session.history}
        plan = session.plan()
        result = session.collect()
        after = {m.message_id: m for m in session.history}
        stubs = {s.derived_from: s.text for s in inside.heap if s.tier == "working"}
        entries = [
            PlannedEntry(inside.heap.get(c.segment_id), c.evidence, stubs.get(c.segment_id, ""))
            for c in plan.candidates
        ]
        return FirstCollection(
            request=len(self.fills),
            target=target,
            liveness=liveness,
            plan=plan,
            entries=entries,
            result=result,
            violations=len(validate(session.view(), "openai")),
            must_stay=len(must_stay),
            lost=sum(after.get(kept) is not before[kept] for kept in must_stay),
        )

    def finish(self) -> Play:
        config, inside = self.session.config, self.session.inspect()
        savings = replace(
            inside.state.savings.savings
        )  # without the recall that only the demo makes
        return Play(
            window=self.session.context_limit,
            soft_limit=int(config.soft_limit_percent),
            threshold=int(config.threshold_percent),
            target=int(config.target_percent),
            messages=len(self.came),
            fills=self.fills,
            results=self.session.gc_history,
            first=self._first,
            recalled=self._recall(),
            savings=savings,
            ledger=inside.heap.ledger,
            deleted_of_session=sum(inside.heap.peek(i) is None for i in self._ids),
        )

    def _recall(self) -> Recalled | None:
        """Bring back the first result that left a tombstone with its handle, as a model would."""
        found = next(filter(None, map(_HANDLE.search, self._tool_texts())), None)
        if found is None:
            return None
        segment = self.session.recall(found[1])
        came = {m["content"] for m in self.came if m["role"] == "tool"}
        is_same = segment.text in came.intersection(self._tool_texts())
        return Recalled(found[1], segment.tokens or 0, is_same)

    def _tool_texts(self) -> list[str]:
        return [m["content"] for m in self.session.view() if m["role"] == "tool"]
