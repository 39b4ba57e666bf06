"""Ghosts: the memory of what was recalled after it had left, so that its like leaves later.

Segments are alike when they show the same file, or the output of the same kind of command. Each recall
makes a ghost of that kin stronger; with every request it fades.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ctxgc.core.segment import ContextSegment

MOST_KIN = 64
MOST_WEIGHT = 4.0
HALF_LIFE = 16
"""In requests. Recorded runs recall nothing, so none of these numbers can be fitted on them."""
_FADED = 0.1

_CHANGE_FOLDER = re.compile(r"\s*cd\s+\S+\s*(?:&&|;)\s*")
_SUBCOMMAND = re.compile(r"[a-z][\w-]*")


class Ghosts:
    """Knows how often the kin of a segment was recalled lately; of too many kin the oldest are forgotten."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

    def note(self, segment: ContextSegment, request: int) -> None:
        """Take note that a segment was recalled after it had left, before a request."""
        kin = kin_of(segment)
        if not kin:
            return
        weight = min(MOST_WEIGHT, self.weight(segment, request) + 1)
        self._seen.pop(kin, None)
        self._seen[kin] = (weight, request)
        if len(self._seen) > MOST_KIN:
            del self._seen[next(iter(self._seen))]

    def weight(self, segment: ContextSegment, request: int) -> float:
        """Return how strong the ghost of a segment's kin is: 1 for a recall just now, 0 without one."""
        if not self._seen:
            return 0.0
        return _faded(*self._seen.get(kin_of(segment), (0.0, 0)), request)

    def are_about(self, request: int) -> bool:
        """Tell whether there is a ghost that has not faded yet."""
        return any(_faded(weight, since, request) for weight, since in self._seen.values())

    def to_doc(self) -> dict[str, list[float]]:
        """Return the ghosts as JSON values, oldest first."""
        return {kin: [weight, since] for kin, (weight, since) in self._seen.items()}

    def restate(self, doc: Mapping[str, Sequence[float]]) -> None:
        """Be what a document says."""
        self._seen = {kin: (float(weight), int(since)) for kin, (weight, since) in doc.items()}


def _faded(weight: float, since: int, request: int) -> float:
    left = weight * 0.5 ** (max(0, request - since) / HALF_LIFE)
    return left if left >= _FADED else 0.0


def kin_of(segment: ContextSegment) -> str:
    """Return what a segment has in common with its like: its file, else its kind of command."""
    if segment.file_path:
        return f"file {segment.file_path}"
    if not segment.command:
        return ""
    words = _CHANGE_FOLDER.sub("", segment.command, count=1).split(None, 2)
    is_named = len(words) > 1 and _SUBCOMMAND.fullmatch(words[1])
    return f"command {' '.join(words[: 2 if is_named else 1])}"
