"""The memory of what was recalled after it had left, so that similar segments leave later.

Segments are similar when they show the same file, or the output of the same kind of command. Each recall
adds to the weight of its kind, which fades with every request. (Caches call this a ghost list.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ctxgc.core.segment import ContextSegment

MOST_KEYS = 64
MOST_WEIGHT = 4.0
HALF_LIFE = 16
"""In requests. Recorded runs recall nothing, so none of these numbers can be fitted on them."""
_FADED = 0.1

_CHANGE_FOLDER = re.compile(r"\s*cd\s+\S+\s*(?:&&|;)\s*")
_SUBCOMMAND = re.compile(r"[a-z][\w-]*")


class RecallMemory:
    """Knows how often segments similar to one were recalled lately; the oldest of too many are forgotten."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, int]] = {}

    def __copy__(self) -> RecallMemory:
        twin = RecallMemory()
        twin._seen = dict(self._seen)
        return twin

    def __bool__(self) -> bool:
        return bool(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

    def note(self, segment: ContextSegment, request: int) -> None:
        """Note that a segment was recalled after it had left, before a request."""
        key = similarity_key(segment)
        if not key:
            return
        weight = min(MOST_WEIGHT, self.weight(segment, request) + 1)
        self._seen.pop(key, None)
        self._seen[key] = (weight, request)
        if len(self._seen) > MOST_KEYS:
            del self._seen[next(iter(self._seen))]

    def weight(self, segment: ContextSegment, request: int) -> float:
        """Return the weight of similar segments: 1 for one recall just now, 0 without any."""
        if not self._seen:
            return 0.0
        return _faded(*self._seen.get(similarity_key(segment), (0.0, 0)), request)

    def any_left(self, request: int) -> bool:
        """Return whether some recall has not faded yet."""
        return any(_faded(weight, since, request) for weight, since in self._seen.values())

    def to_doc(self) -> dict[str, list[float]]:
        """Return the weights as JSON values, oldest first."""
        return {key: [weight, since] for key, (weight, since) in self._seen.items()}

    def restate(self, doc: Mapping[str, Sequence[float]]) -> None:
        """Take the state that a document describes."""
        self._seen = {key: (float(weight), int(since)) for key, (weight, since) in doc.items()}


def _faded(weight: float, since: int, request: int) -> float:
    left = weight * 0.5 ** (max(0, request - since) / HALF_LIFE)
    return left if left >= _FADED else 0.0


def similarity_key(segment: ContextSegment) -> str:
    """Return what similar segments have in common: their file, else their kind of command."""
    if segment.file_path:
        return f"file {segment.file_path}"
    if not segment.command:
        return ""
    words = _CHANGE_FOLDER.sub("", segment.command, count=1).split(None, 2)
    is_named = len(words) > 1 and _SUBCOMMAND.fullmatch(words[1])
    return f"command {' '.join(words[: 2 if is_named else 1])}"
