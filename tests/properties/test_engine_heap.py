"""A heap under random use: every header, sum and index is judged after every single operation."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ctxgc.collector import GCEngine
from ctxgc.core import (
    EngineOptions,
    GCState,
    Heap,
    RootKnobs,
)
from ctxgc.core.codec import heap_from_json, heap_to_json
from ctxgc.core.roots import compute_roots
from ctxgc.core.segment import explicit_references
from ctxgc.errors import StalePlanError, UnknownSegmentError
from tests.properties import heaps, naive_engine, naive_history
from tests.properties.mark_checker import check_marks, check_roots
from tests.properties.plan_checker import Judge, check_plan
from tests.properties.snapshots import snapshot
from tests.requirements import requirement

PICKS = st.integers(0, 40)
OPTIONS = heaps.options()


class HeapMachine(RuleBasedStateMachine):
    """Drives a heap and its replayed history side by side."""

    @initialize(specs=heaps.batches(max_size=6))
    def start(self, specs: list) -> None:
        self.heap = Heap()
        self.history = naive_history.History()
        self.named = 0
        self._add(specs)

    def _add(self, batch: list) -> None:
        # The parts of a message arrive together, so a batch is at most one message.
        batch = [
            msgspec.structs.replace(s, message_id=s.message_id and f"m{self.named}") for s in batch
        ]
        self.heap.add_all(batch)
        self.history.add_all(batch)
        self.named += len(batch)

    def _pick(self, pick: int) -> str:
        ids = sorted(self.history.segments)
        return ids[pick % len(ids)]

    def _has_segments(self) -> bool:
        return bool(self.history.segments)

    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        known = tuple(sorted(self.history.segments))
        self._add(data.draw(heaps.batches(self.named, known, 3)))

    @precondition(_has_segments)
    @rule(pick=PICKS)
    def add_again(self, pick: int) -> None:
        known, version = self.history.segments[self._pick(pick)], self.heap.version
        assert self.heap.add(known) == known.segment_id
        assert self.heap.version == version

    @precondition(_has_segments)
    @rule(pick=PICKS)
    def refuse_an_unknown_link(self, pick: int) -> None:
        before = snapshot(self.heap)
        with pytest.raises(UnknownSegmentError):
            self.heap.link(self._pick(pick), "nobody")
        with pytest.raises(UnknownSegmentError):
            self.heap.add_all(_with_a_loose_end(self.named))
        assert snapshot(self.heap) == before

    @precondition(_has_segments)
    @rule(pick=PICKS, minutes=st.integers(0, 60))
    def touch(self, pick: int, minutes: int) -> None:
        segment = self.heap.get(self._pick(pick))
        touches = segment.touches
        self.heap.touch(segment.segment_id, heaps.NOW)
        assert (segment.touches, segment.last_touched_step) == (touches + 1, self.heap.step)

    @precondition(_has_segments)
    @rule(a=PICKS, b=PICKS)
    def link(self, a: int, b: int) -> None:
        pair = (self._pick(a), self._pick(b))
        self.heap.link(*pair)
        self.history.links.add(pair)

    @precondition(_has_segments)
    @rule(a=PICKS, b=PICKS, linked=st.booleans())
    def unlink(self, a: int, b: int, linked: bool) -> None:
        pairs = sorted(self.history.links) if linked else []
        pair = pairs[a % len(pairs)] if pairs else (self._pick(a), self._pick(b))
        self.heap.unlink(*pair)
        self.history.links.discard(pair)

    @precondition(_has_segments)
    @rule(pick=PICKS, pinned=st.booleans())
    def pin(self, pick: int, pinned: bool) -> None:
        segment_id = self._pick(pick)
        (self.heap.pin if pinned else self.heap.unpin)(segment_id)
        (self.history.pinned.add if pinned else self.history.pinned.discard)(segment_id)

    @precondition(_has_segments)
    @rule(pick=PICKS, steps=st.integers(0, 4))
    def protect(self, pick: int, steps: int) -> None:
        self.heap.protect(self._pick(pick), self.heap.step + steps)

    @precondition(_has_segments)
    @rule(pick=PICKS, said=heaps.annotations())
    def annotate(self, pick: int, said: dict) -> None:
        known = self.heap.get(self._pick(pick))
        if known.type == "message" and known.message_id is None:
            said.pop("type", None)
        before = set(explicit_references(known))
        self.heap.annotate(known.segment_id, **said)
        now = set(explicit_references(known))
        links = self.history.links - {(known.segment_id, target) for target in before - now}
        self.history.links = links
        self.history.annotate(known.segment_id, said)

    @rule(path=st.sampled_from(("src/a.py", "src/b.py")))
    def open_file(self, path: str) -> None:
        self.heap.open_file(path)
        self.history.open_file(path)

    @precondition(_has_segments)
    @rule(pick=PICKS)
    def stash(self, pick: int) -> None:
        self.heap.stash(self._pick(pick))
        self.history.stash(self._pick(pick))

    @precondition(_has_segments)
    @rule(pick=PICKS)
    def recall(self, pick: int) -> None:
        segment_id = self._pick(pick)
        text = self.history.segments[segment_id].text
        self.heap.recall(segment_id)
        self.history.recall(segment_id)
        assert self.heap.get(segment_id).text == text

    @precondition(_has_segments)
    @rule(pick=PICKS)
    def remove(self, pick: int) -> None:
        segment_id = self._pick(pick)
        assert self.heap.remove(segment_id).segment_id == segment_id
        self.history.remove(segment_id)

    @rule(
        options=OPTIONS,
        need=st.one_of(st.none(), st.integers(0, 400)),
        scope=st.sampled_from(("major", "minor")),
    )
    def collect(self, options: EngineOptions, need: int | None, scope: str) -> None:
        engine = GCEngine(options)
        state = engine.state(self.heap, heaps.NOW)
        roots = compute_roots(state)
        plan = engine.plan(state, free_tokens=need, scope=scope)
        check_plan(plan, self._judge(state, options, scope), need)
        assert engine.plan(state, free_tokens=need, scope=scope) == plan
        done = engine.apply(plan, self.heap)
        self._follow(done.stashed, done.deleted, done.replaced)
        assert roots <= {segment.segment_id for segment in self.heap.working()}
        assert done.tokens_after <= plan.tokens_after <= done.tokens_before
        if plan.candidates:
            with pytest.raises(StalePlanError):
                engine.apply(plan, self.heap)

    @rule(options=heaps.options(batch=2, context_limit=50))
    def step(self, options: EngineOptions) -> None:
        engine = GCEngine(options)
        state = engine.state(self.heap, heaps.NOW)
        roots = compute_roots(state)
        done = engine.step(state)
        if done is not None:
            self._follow(done.stashed, done.deleted, done.replaced)
            assert len(done.stashed) <= 2
            assert roots.isdisjoint(done.stashed)

    @rule()
    def save_and_load(self) -> None:
        self.heap = heap_from_json(heap_to_json(self.heap))

    @rule(knobs=heaps.KNOBS, strong=st.sampled_from((("path", "tag", "topic"), ("tag",))))
    def roots_and_marks(self, knobs: RootKnobs, strong: tuple[str, ...]) -> None:
        state = GCState(heap=self.heap, now=heaps.NOW, knobs=knobs, current_task_id="k1")
        check_roots(state, self.history)
        check_marks(self.heap, set(compute_roots(state)), strong)

    def _judge(self, state: GCState, options: EngineOptions, scope: str) -> Judge:
        segments, roots = list(self.heap), compute_roots(state)
        if scope == "major":
            return Judge.major(segments, roots, options.strong)
        return Judge.minor(segments, roots, options.strong, self.heap.index.touched_old)

    def _follow(self, stashed: list[str], deleted: list[str], replaced: dict[str, str]) -> None:
        for original, stand_in in replaced.items():
            self.history.replace(original, self.heap.get(stand_in))
        for segment_id in stashed:
            self.history.stash(segment_id)
        for segment_id in deleted:
            self.history.remove(segment_id)

    @invariant()
    def headers_are_what_the_history_says(self) -> None:
        history = self.history
        found = {s.segment_id: s for s in self.heap}
        assert list(found) == list(history.segments)
        assert [s.segment_id for s in self.heap.working()] == history.in_order()
        assert {i for i, s in found.items() if s.tier == "working"} == history.working
        assert {i for i, s in found.items() if s.pinned} == history.pinned
        stale = {i: s for i, s in found.items() if s.superseded_by is not None}
        assert {
            i: (s.superseded_by, s.superseded_how) for i, s in stale.items()
        } == history.superseded

    @invariant()
    def links_stand_in_both_directions_and_in_the_fields(self) -> None:
        links = self.history.links
        assert naive_engine.all_links(self.heap) == links
        assert {(a, b) for a, targets in self.heap.references.items() for b in targets} == links
        assert {(a, b) for b, sources in self.heap.backrefs.items() for a in sources} == links
        for segment in self.heap:
            assert segment.refcount == sum(b == segment.segment_id for _, b in links)

    @invariant()
    def the_ledger_adds_up(self) -> None:
        ledger, segments = self.heap.ledger, list(self.heap)
        totals = naive_engine.totals(segments)
        booked = {
            (tier, dimension, value): (amount.segments, amount.tokens)
            for tier in ("working", "stashed")
            for dimension in ("type", "task", "policy", "source")
            for value, amount in ledger.by(dimension, tier).items()
        }
        for tier, amount in (("working", ledger.working), ("stashed", ledger.stashed)):
            assert (amount.segments, amount.tokens) == totals.pop((tier, "all", None), (0, 0))
        assert booked == totals
        assert (ledger.ingested.segments, ledger.ingested.tokens) == self.history.ingested
        assert (ledger.deleted.segments, ledger.deleted.tokens) == self.history.deleted
        assert ledger.balanced()

    @invariant()
    def indexes_are_what_building_them_again_gives(self) -> None:
        again, now = snapshot(heap_from_json(heap_to_json(self.heap))), snapshot(self.heap)
        different = {name: (again[name], now[name]) for name in now if again[name] != now[name]}
        assert different == {}, different


def _with_a_loose_end(named: int) -> list:
    good, bad = heaps.plain(f"s{named}", f"s{named + 1}")
    return [good, msgspec.structs.replace(bad, references=("nobody",))]


@requirement("S0.heap.references", "S0.heap.backrefs", "S1.tests.reference-tracking")
def test_a_heap_agrees_with_its_replayed_history_after_every_operation() -> None:
    _run(examples=120, steps=25)


@pytest.mark.deep
def test_a_heap_agrees_with_its_replayed_history_over_long_lives() -> None:
    _run(examples=2_000, steps=60)


def _run(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        HeapMachine, settings=settings(max_examples=examples, stateful_step_count=steps)
    )
