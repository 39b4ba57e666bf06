"""A text as the window regime reads it: once, piece by piece, with what each piece holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from ctxgc.core.evacuate import GAP
from ctxgc.core.lines import LONG_LINE, bare_line, names_in, pieces_of, words_in
from ctxgc.core.message import Part
from ctxgc.core.tombstone import is_tombstone
from ctxgc.strategies.stubs import kept_of
from ctxgc.wire.tools import strings_of

WORD = "\0w"
LINE = "\0l"


class WindowText:
    """The pieces of a text, and for each one the things in it that may be needed again.

    A thing is a name, a word behind `WORD`, or a whole line behind `LINE`.
    """

    __slots__ = ("all", "ends", "held", "pieces")

    def __init__(self, text: str) -> None:
        self.pieces, self.ends = pieces_of(text)
        self.held = [
            _things(piece, whole) for piece, whole in zip(self.pieces, self._whole(), strict=True)
        ]
        self.all = frozenset[str]().union(*self.held)

    @classmethod
    def joined(cls, texts: Iterable[WindowText]) -> Self:
        """Return one text after the other as one."""
        joined = cls("")
        found = list(texts)
        joined.pieces = [piece for text in found for piece in text.pieces]
        joined.ends = [end for text in found for end in text.ends]
        joined.held = [held for text in found for held in text.held]
        joined.all = frozenset[str]().union(*(text.all for text in found))
        return joined

    @property
    def size(self) -> int:
        """The characters of the text."""
        return sum(map(len, self.pieces)) + len(self.pieces)

    def excerpt(self, kept: Sequence[int]) -> str:
        """Return the pieces that stay, verbatim, with a mark for each gap between them."""
        shown: list[str] = []
        last = -1
        for place in kept:
            if shown:
                shown.append(self.ends[last] if place == last + 1 else f"\n{GAP}\n")
            shown.append(self.pieces[place])
            last = place
        return "".join(shown)

    def _whole(self) -> Iterator[bool]:
        before = "\n"
        for end in self.ends:
            yield before == "\n" == end
            before = end


class WindowTexts:
    """Reads each part of a history once, and remembers it while it is shown."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, WindowText]] = {}

    def of(self, segment_id: str, part: Part) -> WindowText:
        """Return the text of a part: of a call its arguments, of a tombstone the lines under it."""
        known = self._known.get(segment_id)
        if known is None or known[0] is not part.text:
            known = self._known[segment_id] = (part.text, WindowText(_said(part)))
        return known[1]

    def keep(self, segment_ids: set[str]) -> None:
        """Forget all but these."""
        for segment_id in self._known.keys() - segment_ids:
            del self._known[segment_id]


def _said(part: Part) -> str:
    if part.kind == "tool_call":
        return "\n".join(filter(None, (part.name, strings_of(part.text))))
    return kept_of(part.text) if is_tombstone(part.text) else part.text


def _things(piece: str, whole: bool) -> frozenset[str]:
    found = names_in(piece)
    found.update([WORD + word for word in words_in(piece)])
    bare = bare_line(piece) if whole else ""
    if len(bare) >= LONG_LINE:
        found.add(LINE + bare)
    return frozenset(found)
