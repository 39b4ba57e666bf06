"""The provider's prompt cache: how much of a request was read before, byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from ctxgc.testing.serve.prompt import Unit

OPENAI_STEP = 128
ANTHROPIC_LOOKBACK = 20


@dataclass(frozen=True, slots=True)
class CacheUse:
    """What one request read from the cache and wrote to it, in tokens; `total` is the whole prompt."""

    total: int
    read: int = 0
    written: dict[str, int] = field(default_factory=dict)

    @property
    def written_total(self) -> int:
        """All tokens written, whatever their lifetime."""
        return sum(self.written.values())

    @property
    def fresh(self) -> int:
        """Tokens that were neither read from the cache nor written to it."""
        return self.total - self.read - self.written_total


class PrefixCache:
    """Remembers the prefixes of earlier requests, apart for each key (model, account, session)."""

    def __init__(self, min_tokens: int = 1024) -> None:
        self.min_tokens = min_tokens
        self._known: dict[Hashable, set[bytes]] = {}

    def clear(self) -> None:
        """Forget everything, as after the lifetime of all entries."""
        self._known.clear()

    def openai(self, key: Hashable, units: Sequence[Unit]) -> CacheUse:
        """Account for a request whose whole prefix is cached by itself, in steps of 128 tokens."""
        known = self._known.setdefault(key, set())
        digests, sizes = _prefixes(units)
        hit = max((i for i, digest in enumerate(digests) if digest in known), default=-1)
        known.update(digests)
        total = sizes[-1] if sizes else 0
        read = self._steps(sizes[hit]) if hit >= 0 else 0
        return CacheUse(total, read, {"30m": max(0, self._steps(total) - read)})

    def anthropic(self, key: Hashable, units: Sequence[Unit]) -> CacheUse:
        """Account for a request that is cached at its breakpoints only."""
        known = self._known.setdefault(key, set())
        digests, sizes = _prefixes(units)
        marks = [i for i, u in enumerate(units) if u.mark and sizes[i] >= self.min_tokens]
        hit = max((i for mark in marks for i in _lookback(mark) if digests[i] in known), default=-1)
        read = sizes[hit] if hit >= 0 else 0
        written: dict[str, int] = {}
        reached = read
        for mark in marks:
            known.add(digests[mark])
            if sizes[mark] > reached:
                life = str(units[mark].mark)
                written[life] = written.get(life, 0) + sizes[mark] - reached
                reached = sizes[mark]
        return CacheUse(sizes[-1] if sizes else 0, read, written)

    def _steps(self, tokens: int) -> int:
        return tokens - tokens % OPENAI_STEP if tokens >= self.min_tokens else 0


def _prefixes(units: Sequence[Unit]) -> tuple[list[bytes], list[int]]:
    """Return for each unit the digest and the tokens of all up to and with it."""
    return list(_digests(units)), list(accumulate(unit.tokens for unit in units))


def _digests(units: Sequence[Unit]) -> Iterator[bytes]:
    running = hashlib.sha256()
    for unit in units:
        running.update(len(unit.content).to_bytes(8, "big") + unit.content)
        yield running.digest()


def _lookback(mark: int) -> range:
    return range(max(0, mark - ANTHROPIC_LOOKBACK + 1), mark + 1)
