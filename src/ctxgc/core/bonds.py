"""Bonds: segments that live and die together.

A tool call and its result, all calls of a parallel batch with all their results, a thinking block and
the call it signs. Whoever moves one of them moves all.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from ctxgc.core.groups import Group, depart, ids, join, members
from ctxgc.core.segment import ContextSegment

_NONE: Mapping[str, str] = {}


class Bonds:
    """The bonded groups, and which tool calls still wait for their result."""

    __slots__ = ("_open", "_top", "_unsettled", "groups")

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        """The members of each bond by its name, in order of entry; for reading only."""
        self._open: dict[str, dict[str, str]] = {}
        self._top = -1
        self._unsettled: set[str] = set()

    def add(self, segment: ContextSegment) -> None:
        """Enter a segment into its bond."""
        bond = bond_of(segment)
        if bond is None:
            return
        join(self.groups, bond, segment)
        if segment.position < self._top:
            self._unsettled.add(bond)
        else:
            self._top = segment.position
            self._follow(segment, bond)

    def discard(self, segment: ContextSegment) -> None:
        """Take a segment out of its bond."""
        bond = bond_of(segment)
        if bond is None or bond not in self.groups:
            return
        depart(self.groups, bond, segment)
        if bond in self.groups:
            self._unsettled.add(bond)
        else:
            self._open.pop(bond, None)

    def settle(self) -> None:
        """Find the open calls anew in the bonds that a part left, or came back to out of its turn."""
        for bond in self._unsettled:
            self._open.pop(bond, None)
            parts = members(self.groups.get(bond, ()))
            for segment in sorted(parts, key=attrgetter("position")):
                self._follow(segment, bond)
        self._unsettled.clear()

    def group(self, segment: ContextSegment) -> tuple[str, ...]:
        """Return the ids that move together with a segment, itself included, in order of entry."""
        bond = bond_of(segment)
        group = self.groups.get(bond) if bond is not None else None
        return tuple(ids(group)) if group else (segment.segment_id,)

    def open_calls(self) -> tuple[str, ...]:
        """Return the segments that hold a tool call without a result."""
        return tuple(call for calls in self._open.values() for call in calls.values())

    def is_open(self, segment: ContextSegment) -> bool:
        """Tell whether a segment is a tool call without a result."""
        bond, call_id = bond_of(segment), segment.call_id
        if bond is None or call_id is None:
            return False
        return self._open.get(bond, _NONE).get(call_id) == segment.segment_id

    def _follow(self, segment: ContextSegment, bond: str) -> None:
        """Note a call as open, or as answered: the last word on a call id holds."""
        if segment.call_id is None:
            return
        if segment.part == "tool_call":
            self._open.setdefault(bond, {})[segment.call_id] = segment.segment_id
        elif segment.part == "tool_result" and bond in self._open:
            self._open[bond].pop(segment.call_id, None)
            if not self._open[bond]:
                del self._open[bond]


def bond_of(segment: ContextSegment) -> str | None:
    """Return the name of a segment's bond: the given one, else its tool call."""
    return segment.bond_id if segment.bond_id is not None else segment.call_id
