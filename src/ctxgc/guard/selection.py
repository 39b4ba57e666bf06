"""Choosing what stays: essentials, then what is relevant, then the best scores that fit.

Content is taken by bonds, so that what lives together stays or goes together. The threshold rises from
score to score until the essentials and all that lies above it fit; smaller content below it then fills
the room that is left. Together that is one pass from the best down which passes over what does not
fit. So a larger target never keeps fewer tokens; it may keep other pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ctxgc.errors import ShortfallError
from ctxgc.guard.content import ContentItem
from ctxgc.guard.decisions import ScoredContent, Verdict

_KINDNESS = tuple(Verdict)


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """Content that lives and dies together: its best score and its kindest verdict count for all."""

    members: tuple[ScoredContent, ...]
    size: int
    score: int
    verdict: Verdict


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What was chosen, in order of choice, and the threshold above which all of it was kept."""

    chosen: tuple[ContentItem, ...]
    size: int
    threshold: float


def units(scored: Iterable[ScoredContent]) -> list[Unit]:
    """Return scored content by its bonds, highest score first."""
    groups: dict[tuple[bool, str], list[ScoredContent]] = {}
    for one in scored:
        item = one.content
        groups.setdefault((item.bond is None, item.bond or item.id), []).append(one)
    made = [_unit(tuple(members)) for members in groups.values()]
    return sorted(made, key=lambda unit: -unit.score)


def _unit(members: tuple[ScoredContent, ...]) -> Unit:
    return Unit(
        members=members,
        size=sum(one.content.size for one in members),
        score=max(one.score for one in members),
        verdict=min((one.decision.verdict for one in members), key=_KINDNESS.index),
    )


def select(scored: Iterable[ScoredContent], target: int, floor: float) -> Selection:
    """Return what stays within a target; scores at or below the floor are not weighed at all.

    Raises:
        ShortfallError: the essentials alone do not fit.
    """
    groups = units(scored)
    essential = [unit for unit in groups if unit.verdict is Verdict.ESSENTIAL]
    relevant = [unit for unit in groups if unit.verdict is Verdict.RELEVANT]
    weighed = [u for u in groups if u.verdict is Verdict.WEIGHED and u.score > floor]
    room = target - _size(essential)
    if room < 0:
        raise shortfall([one.content for unit in essential for one in unit.members], target)
    filled = _fill((*relevant, *weighed), room)
    room -= _size(unit for unit in filled if unit.verdict is Verdict.RELEVANT)
    chosen = [one.content for unit in (*essential, *filled) for one in unit.members]
    return Selection(
        chosen=tuple(chosen),
        size=sum(item.size for item in chosen),
        threshold=_rising(weighed, room, floor),
    )


def _size(group: Iterable[Unit]) -> int:
    return sum(unit.size for unit in group)


def _rising(weighed: Sequence[Unit], room: int, floor: float) -> float:
    """Raise the threshold from score to score until all that lies above it fits."""
    threshold = floor
    above = _size(weighed)
    for unit in reversed(weighed):
        if above <= room and unit.score > threshold:
            break
        threshold = unit.score
        above -= unit.size
    return threshold


def _fill(ordered: Sequence[Unit], room: int) -> list[Unit]:
    """Take what fits, best first, passing over what does not."""
    taken = []
    for unit in ordered:
        if unit.size <= room:
            taken.append(unit)
            room -= unit.size
    return taken


def shortfall(items: Sequence[ContentItem], target: int) -> ShortfallError:
    """Return the error that names the essentials that do not fit, largest first."""
    size = sum(item.size for item in items)
    largest = sorted(items, key=lambda item: (-item.size, item.id))
    return ShortfallError(
        f"what must stay takes {size} tokens, {size - target} more than the target of {target}",
        hint="shorten or unpin the largest parts, or use a larger window",
        tokens_short=size - target,
        target=target,
        parts=[{"id": i.id, "type": i.type, "tokens": i.size} for i in largest],
    )
