"""Explicit links between segments, in both directions.

`references[a]` holds the ids that `a` refers to, `backrefs[b]` those that refer to `b`; a refcount is
the size of a segment's backrefs and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

_NONE: frozenset[str] = frozenset()


class Links:
    """The reference graph. Segments without links cost nothing."""

    __slots__ = ("backrefs", "references", "remembered")

    def __init__(self) -> None:
        self.references: dict[str, set[str]] = {}
        self.backrefs: dict[str, set[str]] = {}
        self.remembered: dict[str, int] = {}
        """Young segments that old ones refer to, with the number of such links."""

    def add(self, source: str, target: str) -> bool:
        """Link `source` to `target`; tell whether the link is new."""
        out = self.references.get(source)
        if out is None:
            out = self.references[source] = set()
        elif target in out:
            return False
        out.add(target)
        back = self.backrefs.get(target)
        if back is None:
            self.backrefs[target] = {source}
        else:
            back.add(source)
        return True

    def discard(self, source: str, target: str) -> bool:
        """Unlink `source` from `target`; tell whether there was a link."""
        out = self.references.get(source)
        if out is None or target not in out:
            return False
        _drop(self.references, source, target)
        _drop(self.backrefs, target, source)
        return True

    def targets(self, source: str) -> Iterable[str]:
        """Return whom a segment refers to."""
        return self.references.get(source, _NONE)

    def sources(self, target: str) -> Iterable[str]:
        """Return who refers to a segment."""
        return self.backrefs.get(target, _NONE)

    def refcount(self, target: str) -> int:
        """Return how many segments refer to this one."""
        return len(self.backrefs.get(target, _NONE))

    def remember(self, target: str, links: int) -> None:
        """Count links from old segments to a young one up or down."""
        count = self.remembered.get(target, 0) + links
        if count > 0:
            self.remembered[target] = count
        else:
            self.remembered.pop(target, None)


def _drop(table: dict[str, set[str]], key: str, member: str) -> None:
    members = table[key]
    members.discard(member)
    if not members:
        del table[key]
