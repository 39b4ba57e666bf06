"""Remember counts, so that the same text is counted once."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

from ctxgc.errors import InputError
from ctxgc.tokens.counter import TokenCounter, require_text

MAX_TEXTS = 65_536
_SHORT_CHARS = 64
_STRIPES = 16


class CountingCache:
    """A counter that asks another one only for texts it has not seen; safe to share between threads.

    It keeps a digest and a number for each of the last `max_texts` texts, never a long text itself, so its
    size does not depend on theirs (about 15 MB when full). Threads that ask for the same text at the same
    time cause one count.
    """

    def __init__(self, counter: TokenCounter, *, max_texts: int = MAX_TEXTS) -> None:
        if max_texts < 1:
            raise InputError(
                f"max_texts must be at least 1, not {max_texts}",
                hint="it bounds the memory",
                field="max_texts",
            )
        self._counter = counter
        self._max_texts = max_texts
        self._counts: OrderedDict[str | bytes, int] = OrderedDict()
        self._lock = threading.Lock()
        self._stripes = tuple(threading.Lock() for _ in range(_STRIPES))

    @property
    def name(self) -> str:
        """The name of the counter that is asked."""
        return self._counter.name

    @property
    def exact(self) -> bool:
        """Whether the counter that is asked is exact."""
        return self._counter.exact

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        return f"CountingCache({self._counter!r}, {len(self)} texts)"

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        key = _key(require_text(text))
        known = self._recall(key)
        if known is not None:
            return known
        with self._stripes[hash(key) % _STRIPES]:
            known = self._recall(key)
            return self._remember(key, self._counter.count(text)) if known is None else known

    def calibrate(self, counted_tokens: int, reported_tokens: int) -> bool:
        """Teach the counter that is asked, if it can learn; tell whether counts changed by that."""
        learn = getattr(self._counter, "calibrate", None)
        if learn is None or not learn(counted_tokens, reported_tokens):
            return False
        with self._lock:
            self._counts.clear()
        return True

    def _recall(self, key: str | bytes) -> int | None:
        with self._lock:
            known = self._counts.get(key)
            if known is not None:
                self._counts.move_to_end(key)
            return known

    def _remember(self, key: str | bytes, tokens: int) -> int:
        with self._lock:
            self._counts[key] = tokens
            if len(self._counts) > self._max_texts:
                self._counts.popitem(last=False)
        return tokens


def _key(text: str) -> str | bytes:
    if len(text) <= _SHORT_CHARS:
        return text
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
