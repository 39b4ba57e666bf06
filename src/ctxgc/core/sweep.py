"""Sweep: choose what leaves, with the smallest harm for the tokens needed.

The unreachable go first, the superseded before the others; then, only while the target is unmet, the
reachable with the lowest scores. Bonds go whole. What was taken beyond the need is given back, the
most valuable first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter

from msgspec.structs import replace

from ctxgc.core.plan import PruningCandidate


def order_of_leaving(candidates: Iterable[PruningCandidate]) -> list[PruningCandidate]:
    """Return candidates in the order in which they leave; equals keep their given order."""
    # One stable sort per key, the least important first: three of them cost less than tuples as keys.
    ordered = sorted(candidates, key=attrgetter("score"))
    ordered.sort(key=attrgetter("superseded"), reverse=True)
    ordered.sort(key=attrgetter("reachable"))
    return ordered


Find = Callable[[str], PruningCandidate | None]


def choose(
    ordered: Iterable[PruningCandidate], find: Find, need: int
) -> tuple[list[PruningCandidate], int]:
    """Return the candidates that leave to free `need` tokens, and the tokens that are missing.

    Args:
        ordered: candidates in the order in which they may leave; read no further than needed.
        find: gives the candidate for a partner in a bond, None when that partner must stay.
        need: tokens to free.
    """
    chosen: dict[str, PruningCandidate] = {}
    freed = 0
    for candidate in ordered if need else ():
        if candidate.segment_id in chosen:
            continue
        for partner in whole_bond(candidate, find):
            chosen[partner.segment_id] = partner
            freed += partner.freed
        if freed >= need:
            break
    taken = list(chosen.values())
    if freed < need:
        taken, freed = _escalate(taken, freed, need)
    return _give_back(taken, freed - need), max(0, need - freed)


def whole_bond(candidate: PruningCandidate, find: Find) -> list[PruningCandidate]:
    """Return a candidate with its bond, or nothing when a part of the bond must stay."""
    if len(candidate.bond) < 2:
        return [candidate]
    whole: list[PruningCandidate] = []
    for segment_id in candidate.bond:
        partner = candidate if segment_id == candidate.segment_id else find(segment_id)
        if partner is None:
            return []
        whole.append(partner)
    return whole


def _escalate(
    chosen: list[PruningCandidate], freed: int, need: int
) -> tuple[list[PruningCandidate], int]:
    """Stash whole what was only evacuated or compressed, while the need is unmet."""
    stronger: list[PruningCandidate] = []
    for candidate in chosen:
        if freed < need and candidate.action in ("evacuate", "compress"):
            freed += candidate.tokens - candidate.freed
            stronger.append(replace(candidate, action="stash", freed=candidate.tokens))
        else:
            stronger.append(candidate)
    return stronger, freed


def _give_back(chosen: list[PruningCandidate], surplus: int) -> list[PruningCandidate]:
    """Keep what the need does not ask for after all, the most valuable first."""
    smallest = min((candidate.freed for candidate in chosen if candidate.freed), default=0)
    if surplus < max(1, smallest):
        return chosen
    kept_after_all: set[str] = set()
    sizes = _bond_sizes(chosen)
    for candidate in reversed(order_of_leaving(chosen)):
        size = sizes[_bond_name(candidate)]
        if candidate.segment_id not in kept_after_all and 0 < size <= surplus:
            surplus -= size
            kept_after_all.update(candidate.bond or (candidate.segment_id,))
    return [candidate for candidate in chosen if candidate.segment_id not in kept_after_all]


def _bond_name(candidate: PruningCandidate) -> tuple[str, ...]:
    return candidate.bond or (candidate.segment_id,)


def _bond_sizes(chosen: list[PruningCandidate]) -> dict[tuple[str, ...], int]:
    sizes: dict[tuple[str, ...], int] = {}
    for candidate in chosen:
        name = _bond_name(candidate)
        sizes[name] = sizes.get(name, 0) + candidate.freed
    return sizes
