"""Sweep: choose what leaves, with the smallest harm for the tokens needed.

The unreachable go first, the superseded before the others; then, only while the target is unmet, the
reachable with the lowest scores. A bond is stashed or deleted whole; a part of it may be evacuated or
compressed by itself, since something stays in its place. What was taken beyond the need is given
back, the most valuable first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter

from msgspec.structs import replace

from ctxgc.core.plan import IN_PLACE, PruningCandidate

Find = Callable[[str], PruningCandidate | None]


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
    find: Find,
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
            freed += _take(chosen, leaving_with(candidate, find))
        if freed >= need:
            break
    for candidate in tuple(chosen.values()) if freed < need else ():
        if freed >= need:
            break
        if chosen[candidate.segment_id].action in IN_PLACE:
            freed += _take(chosen, leaving_with(_stashed(candidate), find))
    return _give_back(order_of_leaving(chosen.values()), freed - need)


def leaving_with(candidate: PruningCandidate, find: Find) -> list[PruningCandidate]:
    """Return a candidate with all that leaves with it; nothing when a part of its bond must stay."""
    if len(candidate.bond) < 2 or candidate.action in IN_PLACE:
        return [candidate]
    whole: list[PruningCandidate] = []
    for segment_id in candidate.bond:
        partner = candidate if segment_id == candidate.segment_id else find(segment_id)
        if partner is None:
            return []
        whole.append(_stashed(partner))
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


def _stashed(candidate: PruningCandidate) -> PruningCandidate:
    if candidate.action not in IN_PLACE:
        return candidate
    return replace(candidate, action="stash", freed=candidate.tokens)


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
