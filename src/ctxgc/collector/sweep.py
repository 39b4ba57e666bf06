"""The sweep: candidates in their order of leaving, and the planner that takes them until the need is met."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from ctxgc.collector.excerpt import LINE_SHARE, evacuate
from ctxgc.collector.liveness import Analysis
from ctxgc.collector.presets import larger
from ctxgc.core import (
    IN_PLACE,
    Action,
    ContextSegment,
    EngineOptions,
    Evidence,
    Heap,
    PruningCandidate,
    PruningPlan,
    assemble,
    bond_of,
    candidate_for,
    is_tombstone,
    long_tombstone,
    members,
)

# -- Shrinking: what a live segment can become instead of leaving


MIN_SAVING = 0.30
_PLAIN_PARTS = (None, "text", "tool_result")
_FOR_ROOM = Evidence(kind="least_worth").brief


class Shrunk(NamedTuple):
    """What to do with a segment, and the tokens that it frees."""

    action: Action
    freed: int


class Shrinker:
    """Decides how segments get smaller. `leaving` names what other working segments will not hold."""

    def __init__(self, heap: Heap, options: EngineOptions) -> None:
        self._heap = heap
        self._options = options
        self.leaving: set[str] = set()
        self.stubs: dict[str, str] = {}

    def shrink(self, segment: ContextSegment) -> Shrunk | None:
        """Return the kindest way to make a segment smaller, its stub noted; None when there is none."""
        if not _is_plain(segment):
            return None
        if self._may_evacuate(segment) and (freed := self._evacuate(segment)):
            return Shrunk("evacuate", freed)
        if self._options.can_compress and self.may_compress(segment):
            return Shrunk("compress", freed) if (freed := self._compress(segment)) else None
        return None

    def outlive(self, segment: ContextSegment, why: str) -> Shrunk | None:
        """Return what a stub in the place of a superseded result frees; None when that is too little.

        No line of it stays: what took its place is the newer word on all of them.
        """
        freed = self._saved(segment, stub_of(segment, why, self._options))
        return Shrunk("evacuate", freed) if freed else None

    def may_compress(self, segment: ContextSegment) -> bool:
        """Tell whether a segment is long and cold, so that a summary of it is worth its cost."""
        if (segment.tokens or 0) < self._options.verbose_tokens or not _is_plain(segment):
            return False
        return self._heap.step - segment.last_touched_step >= self._options.cold_steps

    def _may_evacuate(self, segment: ContextSegment) -> bool:
        long_enough = (segment.tokens or 0) >= self._options.evacuate_min_tokens
        return long_enough and segment.type in ("log", "code")

    def _evacuate(self, segment: ContextSegment) -> int:
        """Note the stub with the live lines and return what it frees, zero when that is too little."""
        mentions = self._heap.mentions
        names = mentions.going(segment.segment_id, segment.text, self.leaving)
        share = larger(LINE_SHARE) if self._options.recall_call is None else LINE_SHARE
        found = evacuate(segment.text, names, line_share=share)
        said = f"{_FOR_ROOM}; its live lines stay"
        stub = stub_of(segment, said, self._options, names=found.names, kept=found.kept)
        return self._saved(segment, stub)

    def _saved(self, segment: ContextSegment, stub: str) -> int:
        """Note a stub and return what it frees, zero when that is too little."""
        freed = saving(segment.tokens or 0, self._heap.count(stub))
        if freed:
            self.stubs[segment.segment_id] = stub
        return freed

    def _compress(self, segment: ContextSegment) -> int:
        """Return what a summary frees at least; zero when the stub for a failed one has no room."""
        tokens = segment.tokens or 0
        room = int(tokens * self._options.compress_ratio)
        stub = stub_of(segment, f"{_FOR_ROOM}; no summary could be made", self._options)
        if self._heap.count(stub) > room:
            return 0
        self.stubs[segment.segment_id] = stub
        return tokens - room


def saving(tokens: int, stub_tokens: int) -> int:
    """Return what a stub in the place of a text frees, zero when that is too little."""
    freed = tokens - stub_tokens
    return freed if freed > 0 and freed >= MIN_SAVING * tokens else 0


def stub_of(
    segment: ContextSegment,
    why: str,
    options: EngineOptions,
    *,
    names: tuple[str, ...] = (),
    kept: str = "",
) -> str:
    """Return the tombstone that takes the place of a segment."""
    recall = options.recall_call or ""
    handle = segment.segment_id if recall else ""
    return long_tombstone(segment, why, handle=handle, recall=recall, names=names, kept=kept)


def _is_plain(segment: ContextSegment) -> bool:
    """Tell whether a segment is current text of its own, neither structure nor a stub already."""
    if segment.superseded_by is not None or segment.part not in _PLAIN_PARTS:
        return False
    return not is_tombstone(segment.text)


# -- Sweep: choose what leaves, with the smallest harm for the tokens needed


FindCandidate = Callable[[str], PruningCandidate | None]


def order_of_leaving(candidates: Iterable[PruningCandidate]) -> list[PruningCandidate]:
    """Return candidates in the order in which they leave; equals keep their given order."""
    stale: list[PruningCandidate] = []
    fresh: list[PruningCandidate] = []
    live: list[PruningCandidate] = []
    for candidate in candidates:
        (live if candidate.reachable else stale if candidate.superseded else fresh).append(
            candidate
        )
    for shelf in (stale, fresh, live):
        shelf.sort(key=attrgetter("score"))
    live.sort(key=attrgetter("superseded"), reverse=True)
    return [*stale, *fresh, *live]


def choose(
    ordered: Iterable[PruningCandidate],
    find: FindCandidate,
    need: int,
    *,
    whole: Iterable[list[PruningCandidate]] = (),
) -> list[PruningCandidate]:
    """Return the candidates that leave to free `need` tokens, or all that can when that is too much.

    Args:
        ordered: candidates in the order in which they may leave; read no further than needed.
        find: gives the candidate for a partner in a bond, None when that partner must stay.
        need: tokens to free.
        whole: unreachable bonds, each with all of its members, that leave before all others.
    """
    chosen: dict[str, PruningCandidate] = {}
    freed = _take_whole(chosen, whole, need)
    for candidate in ordered if freed < need else ():
        if candidate.segment_id not in chosen:
            freed += _take(chosen, leaving_with(candidate, find, need))
        if freed >= need:
            break
    for candidate in tuple(chosen.values()) if freed < need else ():
        if freed >= need:
            break
        if chosen[candidate.segment_id].action in IN_PLACE:
            freed += _take(chosen, leaving_with(_stashed(candidate, need), find, need))
    return _give_back(order_of_leaving(chosen.values()), freed - need)


def leaving_with(
    candidate: PruningCandidate, find: FindCandidate, need: int
) -> list[PruningCandidate]:
    """Return a candidate with all that leaves with it; nothing when a part of its bond must stay."""
    if len(candidate.bond) < 2 or candidate.action in IN_PLACE:
        return [candidate]
    whole: list[PruningCandidate] = []
    for segment_id in candidate.bond:
        partner = candidate if segment_id == candidate.segment_id else find(segment_id)
        if partner is None:
            return []
        whole.append(_stashed(partner, need))
    return whole


def _take_whole(
    chosen: dict[str, PruningCandidate], whole: Iterable[list[PruningCandidate]], need: int
) -> int:
    """Choose unreachable bonds until the need is met, and return what that frees."""
    freed = 0
    for bond in whole if need else ():
        for candidate in bond:
            chosen[candidate.segment_id] = candidate
            freed += candidate.freed
        if freed >= need:
            break
    return freed


def _take(chosen: dict[str, PruningCandidate], leaving: list[PruningCandidate]) -> int:
    """Choose what leaves together and return what that frees beyond what was chosen of it before."""
    before = [chosen[c.segment_id].freed for c in leaving if c.segment_id in chosen]
    gain = sum([candidate.freed for candidate in leaving]) - sum(before)
    # What a root reaches does not leave for nothing.
    if gain or not any(candidate.reachable for candidate in leaving):
        for candidate in leaving:
            chosen[candidate.segment_id] = candidate
    return gain


def _stashed(candidate: PruningCandidate, need: int) -> PruningCandidate:
    """Return a candidate that leaves whole: one that could have become smaller does so for room alone."""
    if candidate.action not in IN_PLACE:
        return candidate
    room = Evidence(kind="least_worth", tokens=need)
    return replace(
        candidate, action="stash", freed=candidate.tokens, evidence=room, reason=str(room)
    )


def _give_back(chosen: list[PruningCandidate], surplus: int) -> list[PruningCandidate]:
    """Keep what the need does not ask for after all, the most valuable first.

    Garbage is given back only when nothing reachable has to leave.
    """
    if surplus < 1:
        return chosen
    units = [_unit(candidate) for candidate in chosen]
    sizes = _sizes(units, chosen)
    smallest = min([size for size in sizes.values() if size], default=0)
    kept_after_all: set[str] = set()
    live_leaves = False
    for unit, candidate in zip(reversed(units), reversed(chosen), strict=True):
        if surplus < max(1, smallest) or (live_leaves and not candidate.reachable):
            break
        if unit not in kept_after_all and 0 < sizes[unit] <= surplus:
            surplus -= sizes[unit]
            kept_after_all.add(unit)
        live_leaves = live_leaves or (candidate.reachable and unit not in kept_after_all)
    if not kept_after_all:
        return chosen
    return [c for unit, c in zip(units, chosen, strict=True) if unit not in kept_after_all]


def _unit(candidate: PruningCandidate) -> str:
    """Name what a candidate leaves or stays with: the first of its bond stands for all of them."""
    if candidate.action in IN_PLACE or not candidate.bond:
        return candidate.segment_id
    return candidate.bond[0]


def _sizes(units: list[str], chosen: list[PruningCandidate]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for unit, candidate in zip(units, chosen, strict=True):
        sizes[unit] = sizes.get(unit, 0) + candidate.freed
    return sizes


# -- The planner: from an analysis to a plan


class Planner:
    """Turns segments into candidates, lazily: a plan that needs ten looks at ten."""

    def __init__(self, analysis: Analysis, options: EngineOptions) -> None:
        self._analysis = analysis
        self._options = options
        self._heap = analysis.state.heap
        self._now = analysis.state.now
        self._groups = self._heap.bonds.groups
        self._shrinker = Shrinker(self._heap, options)
        self._bonds: dict[str, tuple[str, ...]] = {}
        self._room = Evidence(kind="least_worth")

    def plan(self, need: int | None) -> PruningPlan:
        """Return the plan that frees `need` tokens, or all garbage when no need is given."""
        self._room = Evidence(kind="least_worth", tokens=need or 0)
        chosen = self._choose(need)
        taken = {c.segment_id: c.action for c in chosen}
        stubs = self._shrinker.stubs
        return assemble(
            chosen,
            target_tokens=need,
            proposals=self._proposals(taken),
            scope=self._analysis.scope,
            tokens_before=self._heap.ledger.working.tokens,
            heap_version=self._heap.version,
            stubs={i: stubs[i] for i in sorted(taken) if taken[i] in IN_PLACE},
        )

    def _choose(self, need: int | None) -> list[PruningCandidate]:
        if need is None:
            return list(self.garbage())
        return choose(self._live(), self._find, need, whole=self._garbage_by_bond())

    def _live(self) -> Iterator[PruningCandidate]:
        """Yield the reachable, first to go first; of a bond only what leaves before the rest."""
        # Nothing reachable is looked at before all garbage has been offered.
        self._shrinker.leaving.update(segment.segment_id for segment in self._analysis.garbage)
        done: set[str] = set()
        for segment in self._analysis.live:
            if segment.segment_id not in done:
                done.update(self._bond(segment))
                yield from self._kindest(segment)

    def garbage(self) -> Iterator[PruningCandidate]:
        """Yield what the roots do not reach, first to go first."""
        partners: dict[str, PruningCandidate] = {}
        scored = zip(self._analysis.garbage, self._analysis.garbage_scores, strict=True)
        for segment, score in scored:
            if segment.segment_id not in partners:
                made = self._make_garbage(segment, score)
                partners.update((member.segment_id, member) for member in made)
            if (found := partners.pop(segment.segment_id, None)) is not None:
                yield found

    def _garbage_by_bond(self) -> Iterator[list[PruningCandidate]]:
        """Yield what the roots do not reach, first to go first, each with all that leaves with it."""
        made: set[str] = set()
        scored = zip(self._analysis.garbage, self._analysis.garbage_scores, strict=True)
        for segment, score in scored:
            if segment.segment_id not in made:
                together = self._make_garbage(segment, score)
                if len(together) > 1:
                    made.update([member.segment_id for member in together])
                yield together

    def _make_garbage(self, segment: ContextSegment, score: float) -> list[PruningCandidate]:
        """Make a candidate with all of its bond: whatever lives and dies with garbage is garbage.

        But a superseded result leaves a stub where its bond stays; it makes nothing if that frees too little.
        """
        if self._analysis.bond_lives(segment):
            return self._outlived(segment)
        whole, stale = self._members(segment), segment.superseded_by is not None
        bond = tuple([member.segment_id for member in whole])
        action: Action = "delete" if self._may_delete(whole) else "stash"
        made = []
        for member in whole:
            # The scores of a bond are levelled, those of the superseded apart from the others.
            is_stale = member.superseded_by is not None
            worth = score if is_stale is stale else self._analysis.score(member.segment_id)
            evidence = self._analysis.evidence(member)
            made.append(
                candidate_for(
                    member,
                    self._now,
                    worth,
                    evidence,
                    action=action,
                    superseded=is_stale,
                    bond=bond,
                )
            )
        return made

    def _outlived(self, segment: ContextSegment) -> list[PruningCandidate]:
        evidence = self._analysis.evidence(segment)
        found = self._shrinker.outlive(segment, evidence.brief)
        return [] if found is None else [self._make(segment, found, evidence)]

    def _find(self, segment_id: str) -> PruningCandidate | None:
        if not self._analysis.may_leave(segment_id):
            return None
        return self._stash(self._heap.get(segment_id))

    def _may_delete(self, bond: list[ContextSegment]) -> bool:
        policies = self._options.delete_policies
        return bool(policies) and all(member.policy in policies for member in bond)

    def _kindest(self, segment: ContextSegment) -> list[PruningCandidate]:
        """Return what can be made smaller in a live segment's bond; else the segment, to be stashed."""
        movable = [m for m in self._bond(segment) if self._analysis.may_leave(m)]
        smaller = []
        for member in map(self._heap.get, movable):
            found = self._shrinker.shrink(member)
            if found is not None:
                self._shrinker.leaving.add(member.segment_id)
                smaller.append(self._make(member, found, self._room))
        return smaller or [self._stash(segment)]

    def _stash(self, segment: ContextSegment) -> PruningCandidate:
        self._shrinker.leaving.add(segment.segment_id)
        return self._make(segment, Shrunk("stash", segment.tokens or 0), self._room)

    def _make(self, segment: ContextSegment, how: Shrunk, evidence: Evidence) -> PruningCandidate:
        return candidate_for(
            segment,
            self._now,
            self._analysis.score(segment.segment_id),
            evidence,
            action=how.action,
            reachable=self._analysis.is_live(segment),
            superseded=segment.superseded_by is not None,
            freed=how.freed,
            bond=self._bond(segment),
        )

    def _bond(self, segment: ContextSegment) -> tuple[str, ...]:
        bond = bond_of(segment)
        if bond is None:
            return (segment.segment_id,)
        known = self._bonds.get(bond)
        if known is None:
            known = tuple([member.segment_id for member in self._members(segment)])
            self._bonds[bond] = known
        return known

    def _members(self, segment: ContextSegment) -> list[ContextSegment]:
        bond = bond_of(segment)
        if bond is None:
            return [segment]
        return sorted(members(self._groups[bond]), key=attrgetter("position"))

    def _proposals(self, taken: dict[str, Action]) -> list[PruningCandidate]:
        """Reachable, long and cold: cold but important, so worth a summary."""
        cold = self._analysis.cold(self._shrinker.may_compress, self._options.verbose_tokens)
        return [self._proposal(segment) for segment in cold if segment.segment_id not in taken]

    def _proposal(self, segment: ContextSegment) -> PruningCandidate:
        tokens = segment.tokens or 0
        idle = self._heap.step - segment.last_touched_step
        return candidate_for(
            segment,
            self._now,
            self._analysis.score(segment.segment_id),
            Evidence(kind="cold", tokens=tokens, requests=idle),
            action="compress",
            reachable=True,
            freed=tokens - int(tokens * self._options.compress_ratio),
            bond=self._bond(segment),
        )
