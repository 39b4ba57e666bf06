"""Small ordered sets: a tuple while there are few members, a dict once there are many.

Most messages and tasks have few members. A dict for each would weigh more than the segments
themselves; a tuple of a topic with 100,000 members would be copied 100,000 times.
"""

from __future__ import annotations

from typing import TypeVar

FEW = 24

K = TypeVar("K")
T = TypeVar("T")
Few = tuple[T, ...] | dict[T, None]
Ids = Few[str]


def enter(table: dict[K, Few[T]], key: K, new: T) -> None:
    """Add a member at the end of the set under a key; one that is there keeps its place."""
    members = table.get(key)
    if members is None:
        table[key] = (new,)
    elif isinstance(members, dict):
        members[new] = None
    elif new not in members:
        table[key] = (*members, new) if len(members) < FEW else dict.fromkeys((*members, new))


def leave(table: dict[K, Few[T]], key: K, gone: T) -> None:
    """Take a member out of the set under a key, and the key with the last of them."""
    members = table.get(key)
    if members is None or gone not in members:
        return
    if len(members) == 1:
        del table[key]
    elif isinstance(members, dict):
        del members[gone]
    else:
        table[key] = tuple(other for other in members if other != gone)
