"""Copied bits: what the recorded next answer costs, written down by a compressor that knows the view.

There is no definition of a need in this judge. The text of an answer (its words, the names and arguments
of its calls) is compressed with the view as a dictionary: what the answer repeats from the view is a
short reference, what it does not find there is spelled out. The same answer is compressed with the whole
history, and with a bare view of the head and the last exchange; neither depends on the policy, so each
is done once. Needs zstd, which Python 3.14 has and the extra `ctxgc[lab]` brings for older ones.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from ctxgc.errors import InputError
from ctxgc.lab.needs import Needs, SentMessage

_MODULES = ("compression.zstd", "backports.zstd")
_LEAST_DICTIONARY = 8
_LEAST_LOG, _MOST_LOG = 10, 27
_MOST_HASH_LOG = 22
_SEARCH_LOG = 8
_SHORTEST_MATCH = 4


class AnswerSizes(msgspec.Struct, frozen=True):
    """The bits of one answer, given the view, the whole history and a bare view."""

    view: int
    whole: int
    bare: int


class AnswerBits:
    """The sizes of the answers of one run, for all policies that play it; every `every`-th step counts.

    The first steps of a run say the least, so that of each `every` steps the last one is taken.

    Raises:
        InputError: there is no zstd.
    """

    def __init__(self, needs: Needs, every: int = 1) -> None:
        check_zstd()
        self._needs = needs
        self._steps = frozenset(step.index for step in needs.steps[every - 1 :: every])
        self._references: dict[int, tuple[int, int]] = {}

    def sizes(self, view: Sequence[SentMessage], index: int) -> AnswerSizes | None:
        """Return the bits of the answer at `index` with this view before it; None if it does not count."""
        if index not in self._steps:
            return None
        whole, bare = self._reference(index)
        entries = self._needs.entries
        grown = len(view) == index and all(map(_is, view, entries))
        return AnswerSizes(whole if grown else answer_bits(entries[index], view), whole, bare)

    def _reference(self, index: int) -> tuple[int, int]:
        known = self._references.get(index)
        if known is None:
            answer, whole = self._needs.entries[index], self._needs.entries[:index]
            known = answer_bits(answer, whole), answer_bits(answer, self._needs.bare(index))
            self._references[index] = known
        return known


def _is(one: object, other: object) -> bool:
    return one is other


def answer_bits(answer: SentMessage, view: Sequence[SentMessage]) -> int:
    """Return the bits that it takes to write an answer down, given the messages of a view."""
    return compressed_bits(answer.text, b"\n".join(message.text for message in view))


def compressed_bits(text: bytes, known: bytes) -> int:
    """Return the bits of a text compressed with a dictionary, without what a frame adds to each text."""
    zstd = check_zstd()
    options = _options(max(_LEAST_LOG, min(_MOST_LOG, (len(known) + len(text)).bit_length())))
    prefix = (
        zstd.ZstdDict(known, is_raw=True).as_prefix if len(known) >= _LEAST_DICTIONARY else None
    )
    written = len(zstd.compress(text, options=options, zstd_dict=prefix))
    return 8 * (written - len(zstd.compress(b"", options=options)))


@cache
def _options(log: int) -> dict[Any, int]:
    """Return the options for a window of `2**log` bytes, all of which is indexed.

    A compression level would index only the newest part of a long history, and what is far back would
    seem to be missing.
    """
    zstd = check_zstd()
    parameter = zstd.CompressionParameter
    return {
        parameter.window_log: log,
        parameter.hash_log: min(log, _MOST_HASH_LOG),
        parameter.chain_log: min(log + 1, _MOST_HASH_LOG + 2),
        parameter.search_log: _SEARCH_LOG,
        parameter.min_match: _SHORTEST_MATCH,
        parameter.strategy: zstd.Strategy.lazy2,
        parameter.checksum_flag: 0,
        parameter.content_size_flag: 0,
    }


def has_zstd() -> bool:
    """Return whether copied bits can be measured here."""
    return _zstd() is not None


def check_zstd() -> Any:
    """Return the module that compresses.

    Raises:
        InputError: there is none.
    """
    found = _zstd()
    if found is None:
        raise InputError(
            "copied bits need zstd",
            hint="pip install 'ctxgc[lab]', or --bits-every 0 to do without",
            field="bits_every",
        )
    return found


@cache
def _zstd() -> Any:
    for name in _MODULES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None
