"""Groups of segments: a tuple while there are few members, a dict by their ids once there are many.

What `compact` is for ids. A walk that finds the segments themselves needs no look-up for each of them,
and in a large heap a look-up costs more than all else.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from ctxgc.core.compact import FEW
from ctxgc.core.segment import ContextSegment

NOBODY: tuple[ContextSegment, ...] = ()

K = TypeVar("K")
Group = tuple[ContextSegment, ...] | dict[str, ContextSegment]


def members(group: Group) -> Collection[ContextSegment]:
    """Return the segments of a group in order of entry."""
    return group.values() if isinstance(group, dict) else group


def ids(group: Group) -> Collection[str]:
    """Return the ids of a group in order of entry."""
    return group.keys() if isinstance(group, dict) else tuple([s.segment_id for s in group])


def join(table: dict[K, Group], key: K, new: ContextSegment) -> None:
    """Add a segment at the end of the group under a key; one that is there keeps its place."""
    group = table.get(key)
    if group is None:
        table[key] = (new,)
    elif isinstance(group, dict):
        group[new.segment_id] = new
    elif new.segment_id not in [member.segment_id for member in group]:
        whole = (*group, new)
        table[key] = whole if len(whole) <= FEW else {s.segment_id: s for s in whole}


def depart(table: dict[K, Group], key: K, gone: ContextSegment) -> None:
    """Take a segment out of the group under a key, and the key with the last of them."""
    group = table.get(key)
    if isinstance(group, dict):
        group.pop(gone.segment_id, None)
        rest: Group = group
    else:
        rest = tuple([s for s in group or () if s.segment_id != gone.segment_id])
    if rest:
        table[key] = rest
    else:
        table.pop(key, None)
