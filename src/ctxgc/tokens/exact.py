"""Exact counts: OpenAI's public vocabularies with tiktoken, in linear time for any text."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import threading
import zlib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ctxgc.errors import InputError, VocabularyError
from ctxgc.tokens.counter import require_text

if TYPE_CHECKING:
    import tiktoken

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

_REINSTALL = "install ctxgc again"
_SUFFIX = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


class ExactCounter:
    """Counts in `o200k_base` or `cl100k_base`, with no network and no cache directory.

    The vocabulary is loaded by the first count in the process. Text that looks like a special token
    (`<|endoftext|>`) counts as ordinary text; a lone surrogate counts as U+FFFD. A run of more than 8,192
    characters without a break can count a token or so too many (see `pieces`).
    """

    exact = True

    def __init__(self, encoding: str = "o200k_base") -> None:
        vocabulary(encoding)
        self.name = encoding

    def __repr__(self) -> str:
        return f"ExactCounter({self.name!r})"

    def count(self, text: str) -> int:
        """Return the number of tokens; `VocabularyError` if the shipped vocabulary is damaged."""
        if not require_text(text):
            return 0
        encode = load(self.name).encode_ordinary
        return sum(len(encode(piece)) for piece in pieces(well_formed(text)))


# -- Vocabularies: verified, and unpacked once per process when first needed


class Vocabulary(NamedTuple):
    """What is known about one vocabulary: its size, its digests, and how tiktoken uses it."""

    tokens: int
    packed_sha256: str
    plain_sha256: str
    pattern: str
    special_tokens: dict[str, int]


VOCABULARIES = {
    "o200k_base": Vocabulary(
        tokens=199_998,
        packed_sha256="815ad0c59958aa18ac2136a9d9ac315c38394f2584aefdc5e2aa426fb96722c4",
        plain_sha256="440741350e7cfa1c0f4869ce742d1b043550adbda5187adcac9e787edac6fba9",
        pattern=(
            rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SUFFIX}"
            rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SUFFIX}"
            r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        special_tokens={"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018},
    ),
    "cl100k_base": Vocabulary(
        tokens=100_256,
        packed_sha256="b65cdaaedbfd77b3b19f247b231a5461f9fc4f51209606d33d523f78cc07288b",
        plain_sha256="18288f996f452d44e0e65996176591a4b712a3eb1b42afd6f0511e735c099480",
        pattern=(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
            r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
        ),
        special_tokens={
            "<|endoftext|>": 100_257,
            "<|fim_prefix|>": 100_258,
            "<|fim_middle|>": 100_259,
            "<|fim_suffix|>": 100_260,
            "<|endofprompt|>": 100_276,
        },
    ),
}

_loaded: dict[str, tiktoken.Encoding] = {}
_loading = threading.Lock()


def vocabulary(name: str) -> Vocabulary:
    """Return what is known about the vocabulary `name`; `InputError` if there is none."""
    try:
        return VOCABULARIES[name]
    except (KeyError, TypeError):
        known = ", ".join(VOCABULARIES)
        raise InputError(
            f"encoding: {name!r} is not one that ships with ctxgc",
            hint=f"use one of {known}",
            field="encoding",
        ) from None


def load(name: str) -> tiktoken.Encoding:
    """Return the encoding, the same object each time; concurrent threads wait for one load."""
    if name not in _loaded:
        with _loading:
            if name not in _loaded:
                _loaded[name] = _encoding(name)
    return _loaded[name]


@cache
def usable(name: str) -> bool:
    """Return whether the vocabulary is intact and tiktoken is installed, without loading either."""
    try:
        read(name)
    except VocabularyError:
        return False
    return importlib.util.find_spec("tiktoken") is not None


def read(name: str) -> bytes:
    """Return the packed vocabulary; `VocabularyError` if the file is missing or not what was shipped."""
    known = vocabulary(name)
    try:
        packed = resources.files(__package__).joinpath("vocab", f"{name}.bin").read_bytes()
    except OSError as error:
        raise _damaged(name, f"cannot be read: {error.strerror or error}") from error
    _verify(name, packed, known.packed_sha256)
    return packed


def unpack(name: str, packed: bytes) -> dict[bytes, int]:
    """Return each token with its rank; `VocabularyError` if they are not the published ones."""
    known = vocabulary(name)
    try:
        plain = zlib.decompress(packed)
    except zlib.error as error:
        raise _damaged(name, "cannot be unpacked") from error
    _verify(name, plain, known.plain_sha256)
    edges = accumulate(plain[: known.tokens], initial=known.tokens)
    return {plain[start:end]: rank for rank, (start, end) in enumerate(pairwise(edges))}


def _encoding(name: str) -> tiktoken.Encoding:
    known = vocabulary(name)
    ranks = unpack(name, read(name))
    try:
        import tiktoken  # noqa: PLC0415 - importing ctxgc must not load it
    except ImportError as error:
        raise VocabularyError(
            "tiktoken cannot be imported", hint=_REINSTALL, encoding=name
        ) from error
    return tiktoken.Encoding(
        name,
        pat_str=known.pattern,
        mergeable_ranks=ranks,
        special_tokens=known.special_tokens,
    )


def _verify(name: str, data: bytes, digest: str) -> None:
    if hashlib.sha256(data).hexdigest() != digest:
        raise _damaged(name, "is not what was shipped (its digest differs)")


def _damaged(name: str, what: str) -> VocabularyError:
    return VocabularyError(f"vocabulary {name} {what}", hint=_REINSTALL, encoding=name)


# -- Pieces: a text cut where its count does not change, so that counting takes linear time


def pieces(text: str) -> Iterator[str]:
    """Yield the pieces of `text`, in order; joined they are `text` again."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        end = start + _cut(text[start : start + PIECE_CHARS])
        yield from _without_long_runs(text[start:end])
        start = end
    if start < len(text):
        yield from _without_long_runs(text[start:])


def well_formed(text: str) -> str:
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
