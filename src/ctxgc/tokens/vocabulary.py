"""The vocabularies that ship with ctxgc: verified, unpacked once per process, and only when needed.

tiktoken would download them on first use. Ours stand beside this module (see `vocab/NOTICE`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
import zlib
from functools import cache
from importlib import resources
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ctxgc.errors import InputError, VocabularyError

if TYPE_CHECKING:
    import tiktoken

_REINSTALL = "install ctxgc again"
_SUFFIX = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


class Vocabulary(NamedTuple):
    """What is known about one vocabulary: its size, its digests, and how tiktoken is told to use it."""

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
    """Return the encoding, the same object each time; threads that come first wait for one load."""
    if name not in _loaded:
        with _loading:
            if name not in _loaded:
                _loaded[name] = _encoding(name)
    return _loaded[name]


@cache
def usable(name: str) -> bool:
    """Tell, without loading it, whether the vocabulary is intact and tiktoken is there to use it."""
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
