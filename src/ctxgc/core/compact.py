"""Small ordered sets of ids: a tuple while there are few, a dict once there are many.

Most bonds, messages and shared keys have one or two members. A dict for each would weigh more than the
segments themselves; a tuple of a topic with 100,000 members would be copied 100,000 times.
"""

from __future__ import annotations

FEW = 8

Ids = tuple[str, ...] | dict[str, None]

NO_IDS: Ids = ()


def with_id(ids: Ids, new: str) -> Ids:
    """Return the set with one more member at its end; a large one is changed in place."""
    if isinstance(ids, dict):
        ids[new] = None
        return ids
    if new in ids:
        return ids
    return (*ids, new) if len(ids) < FEW else dict.fromkeys((*ids, new))


def without_id(ids: Ids, gone: str) -> Ids:
    """Return the set without a member; a large one is changed in place."""
    if isinstance(ids, dict):
        ids.pop(gone, None)
        return ids
    return tuple(other for other in ids if other != gone) if gone in ids else ids
