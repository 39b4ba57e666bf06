"""The words of a text, as search sees them.

An identifier counts as its parts and as a whole, however it is written: `parse_config`,
`parseConfig` and `ParseConfig` all give parse, config, parseconfig. A path gives the words of its
names. Scripts without blanks give characters and pairs of them. Case never matters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

LONGEST_WORD = 64

_RUN = re.compile(r"\w+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BLANKLESS = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")


def words(text: str) -> list[str]:
    """Return the words of a text in order, repeated as often as they stand there."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    found: list[str] = []
    for run in _RUN.findall(text):
        found += _words(run[:256])
    return found


@lru_cache(maxsize=1 << 16)
def _words(run: str) -> tuple[str, ...]:
    pieces = [piece for piece in run.split("_") if piece]
    found = [word for piece in pieces for word in _humps(piece)]
    if len(pieces) > 1:
        found.append("".join(pieces).casefold())
    return tuple(word[:LONGEST_WORD] for word in found)


def _humps(piece: str) -> list[str]:
    humps = _HUMP.split(piece)
    if len(humps) == 1:
        return _pairs(piece.casefold())
    return [word for hump in humps for word in _pairs(hump.casefold())] + [piece.casefold()]


def _pairs(part: str) -> list[str]:
    if part.isascii() or not _BLANKLESS.search(part):
        return [part]
    return list(part) + [part[i : i + 2] for i in range(len(part) - 1)]
