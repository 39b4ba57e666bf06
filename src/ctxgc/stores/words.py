"""The words of a text, as search sees them.

An identifier counts as its parts and as a whole, however it is written: `parse_config`,
`parseConfig` and `ParseConfig` all give parse, config, parseconfig. A path gives the words of its
names. Scripts without blanks give characters and pairs of them. Case never matters.
"""

from __future__ import annotations

import re
import unicodedata

LONGEST_WORD = 64
MOST_KNOWN = 1 << 16

_RUN = re.compile(r"\w+")
_RUNS_ONLY = "".join(char if _RUN.match(char) else " " for char in map(chr, range(128)))
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BLANKLESS = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")


def words(text: str) -> list[str]:
    """Return the words of a text in order, repeated as often as they stand there."""
    return spaced(text).split()


def spaced(text: str) -> str:
    """Return the words of a text in order as one text, each with a blank on both sides."""
    if text.isascii():
        runs = text.translate(_RUNS_ONLY).split()
    else:
        runs = _RUN.findall(unicodedata.normalize("NFKC", text))
    found = "".join(map(_known.__getitem__, runs))
    if len(_known) > MOST_KNOWN:
        _known.clear()
    return found


class _Known(dict[str, str]):
    """The words of the runs that were met; looked up without a call in Python."""

    def __missing__(self, run: str) -> str:
        found = self[run] = "".join(f" {word} " for word in _words(run[:256]))
        return found


_known = _Known()


def _words(run: str) -> list[str]:
    pieces = [piece for piece in run.split("_") if piece]
    found = [word for piece in pieces for word in _humps(piece)]
    if len(pieces) > 1:
        found.append("".join(pieces).casefold())
    return [word[:LONGEST_WORD] for word in found]


def _humps(piece: str) -> list[str]:
    humps = _HUMP.split(piece)
    if len(humps) == 1:
        return _pairs(piece.casefold())
    return [word for hump in humps for word in _pairs(hump.casefold())] + [piece.casefold()]


def _pairs(part: str) -> list[str]:
    if part.isascii() or not _BLANKLESS.search(part):
        return [part]
    return list(part) + [part[i : i + 2] for i in range(len(part) - 1)]
