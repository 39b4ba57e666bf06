"""Cut a text into pieces that any tokenizer handles in linear time, at places where the count stays the same.

tiktoken panics on about a million blanks, and its releases up to 0.12 take quadratic time over one unbroken
run. A text is therefore counted piece by piece. A cut stands after a line break or before a single blank,
where both of OpenAI's patterns end a token anyway; only a run without any break is cut by length alone,
counted from its start, which can add a token per cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

PIECE_CHARS = 65_536
"""No piece is longer."""

BLOCK_CHARS = 8192
"""A run that fills a whole block of this size is cut into parts of this size."""

# Read backwards, because the last place is wanted: a line break before something that is neither white
# space nor a slash (o200k lets symbols swallow line breaks and slashes), or one blank between two words.
_CUT_BACKWARDS = re.compile(r"(?<=[^\s/])(?=\n)|(?<=\S )(?=\S)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PAUSE = re.compile(r"[\s\d]")
_SOLID = re.compile(r"\S")


def pieces(text: str) -> Iterator[str]:
    """Yield the pieces of `text`, in order; joined they are `text` again."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        end = start + _cut(text[start : start + PIECE_CHARS])
        yield from _without_long_runs(text[start:end])
        start = end
    if start < len(text):
        yield from _without_long_runs(text[start:])


def mended(text: str) -> str:
    """Return `text` with surrogate pairs joined and lone surrogates replaced, as tokenizers read it."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _cut(chunk: str) -> int:
    found = _CUT_BACKWARDS.search(chunk[::-1])
    at = len(chunk) - found.start() if found else 0
    return at or len(chunk)


def _without_long_runs(piece: str) -> Iterator[str]:
    start = at = 0
    while at + BLOCK_CHARS <= len(piece):
        edge = _run_start(piece, start, at)
        at += BLOCK_CHARS
        if edge is not None:
            if start < edge:
                yield piece[start:edge]
            start = at = edge + BLOCK_CHARS
            yield piece[edge:start]
    if start < len(piece):
        yield piece[start:]


def _run_start(piece: str, start: int, at: int) -> int | None:
    """Return where the run begins that fills the block at `at`, not before `start`; None if none does."""
    end = at + BLOCK_CHARS
    if not _SOLID.search(piece, at, end):
        return _after_last(_SOLID, piece, start, at)
    if not _PAUSE.search(piece, at, end):
        edge = _after_last(_PAUSE, piece, start, at)
        # The blank before a word is part of its first token.
        return edge - 1 if edge > start and piece[edge - 1] == " " else edge
    return None


def _after_last(wanted: re.Pattern[str], piece: str, start: int, end: int) -> int:
    found = wanted.search(piece[start:end][::-1])
    return end - found.start() if found else start
