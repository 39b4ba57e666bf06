"""Bonds: segments that live and die together.

A tool call and its result, all calls of a parallel batch with all their results, a thinking block and
the call it signs. Whoever moves one of them moves all.
"""

from __future__ import annotations

from ctxgc.core.compact import NO_IDS, Ids, with_id, without_id
from ctxgc.core.segment import ContextSegment


class Bonds:
    """The bonded groups, and which tool calls still wait for their result."""

    __slots__ = ("_open", "groups")

    def __init__(self) -> None:
        self.groups: dict[str, Ids] = {}
        """The members of each bond by its name, in order of arrival; for reading only."""
        self._open: dict[tuple[str, str], str] = {}

    def add(self, segment: ContextSegment) -> None:
        """Enter a segment into its bond."""
        bond = bond_of(segment)
        if bond is None:
            return
        self.groups[bond] = with_id(self.groups.get(bond, NO_IDS), segment.segment_id)
        if segment.call_id is not None:
            self._follow(segment, (bond, segment.call_id))

    def discard(self, segment: ContextSegment) -> None:
        """Take a segment out of its bond."""
        bond = bond_of(segment)
        group = self.groups.get(bond) if bond is not None else None
        if bond is None or group is None:
            return
        rest = without_id(group, segment.segment_id)
        if rest:
            self.groups[bond] = rest
        else:
            del self.groups[bond]
        if segment.part == "tool_call" and segment.call_id is not None:
            self._open.pop((bond, segment.call_id), None)

    def group(self, segment: ContextSegment) -> tuple[str, ...]:
        """Return the ids that move together with a segment, itself included, in order of entry."""
        bond = bond_of(segment)
        group = self.groups.get(bond) if bond is not None else None
        return tuple(group) if group else (segment.segment_id,)

    def open_calls(self) -> tuple[str, ...]:
        """Return the segments that hold a tool call without a result."""
        return tuple(self._open.values())

    def is_open(self, segment: ContextSegment) -> bool:
        """Tell whether a segment is a tool call without a result."""
        bond = bond_of(segment)
        return (
            bond is not None
            and segment.call_id is not None
            and self._open.get((bond, segment.call_id)) == segment.segment_id
        )

    def _follow(self, segment: ContextSegment, call: tuple[str, str]) -> None:
        if segment.part == "tool_call":
            self._open[call] = segment.segment_id
        elif segment.part == "tool_result":
            self._open.pop(call, None)


def bond_of(segment: ContextSegment) -> str | None:
    """Return the name of a segment's bond: the given one, else its tool call."""
    return segment.bond_id if segment.bond_id is not None else segment.call_id
