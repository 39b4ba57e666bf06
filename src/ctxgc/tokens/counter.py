"""Token counters: their protocol, a cache for any of them, and calibration by reported usage."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from ctxgc.core import HANDLE
from ctxgc.errors import InputError

MAX_TEXTS = 65_536
_SHORT_CHARS = 64
_STRIPES = 16
# Handles have 13 to 22 tokens in a call that recalls them; half of them have fewer than this one.
_ANY_HANDLE = "h-7b6ctzkkoamozww5"

WINDOW = 32
QUORUM = 3
LEAST_TOKENS = 256
LOWEST, HIGHEST = 0.25, 4.0


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of a text; never raises on any `str`, and `count("")` is 0."""

    @property
    def name(self) -> str:
        """What counts, for people to read: an encoding, or the profile of an estimate."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the counts are those of the model's own tokenizer rather than an estimate."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        ...


def require_text(text: object) -> str:
    """Return `text` if it is a string; raise `InputError` if it is anything else."""
    if not isinstance(text, str):
        raise InputError(
            f"text must be a string, got {type(text).__name__}",
            hint="decode bytes, and render messages to text, before counting",
            field="text",
        )
    return text


# -- Cache


class CountingCache:
    """Counts each text once with another counter and remembers the result; safe to share between threads.

    It keeps a digest and a number for each of the last `max_texts` texts, never a long text itself, so its
    size does not depend on theirs (about 15 MB when full). Threads that ask for the same text at the same
    time cause one count. Every handle in a text counts alike, however it is spelled: handles are derived from
    a random secret, and what a plan chooses must not depend on it.
    """

    def __init__(self, counter: TokenCounter, *, max_texts: int = MAX_TEXTS) -> None:
        if max_texts < 1:
            raise InputError(
                f"max_texts must be at least 1, got {max_texts}",
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
        """The name of the counter inside."""
        return self._counter.name

    @property
    def exact(self) -> bool:
        """Whether the counter inside is exact."""
        return self._counter.exact

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        return f"CountingCache({self._counter!r}, {len(self)} texts)"

    def count(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        text = _with_one_handle(require_text(text))
        key = _key(text)
        known = self._recall(key)
        if known is not None:
            return known
        with self._stripes[hash(key) % _STRIPES]:
            known = self._recall(key)
            return self._remember(key, self._counter.count(text)) if known is None else known

    def calibrate(self, counted_tokens: int, reported_tokens: int) -> bool:
        """Calibrate the counter inside, if it can be; return whether counts changed by that."""
        learn = getattr(self._counter, "calibrate", None)
        if learn is None or not learn(counted_tokens, reported_tokens):
            return False
        with self._lock:
            self._counts.clear()
        return True

    @property
    def scale(self) -> float:
        """The factor that the counter inside has learned; 1 if it cannot learn."""
        scale: float = getattr(self._counter, "scale", 1.0)
        return scale

    @property
    def ratios(self) -> tuple[float, ...]:
        """What the counter inside learned, as `counter_for` takes it; empty if it cannot learn."""
        calibration: Calibration | None = getattr(self._counter, "calibration", None)
        return () if calibration is None else calibration.ratios

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


def _with_one_handle(text: str) -> str:
    return HANDLE.sub(_ANY_HANDLE, text) if "h-" in text else text


def _key(text: str) -> str | bytes:
    if len(text) <= _SHORT_CHARS:
        return text
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


# -- Calibration


class Calibration:
    """A scale that starts at 1 and follows the samples; safe to share between threads.

    `ratios` are those of an earlier calibration, to continue from.
    """

    def __init__(self, ratios: Iterable[float] = ()) -> None:
        self._lock = threading.Lock()
        self._ratios: deque[float] = deque(map(_checked, ratios), maxlen=WINDOW)
        self._scale = _scale(self._ratios)

    @property
    def scale(self) -> float:
        """The factor for an estimate."""
        return self._scale

    @property
    def ratios(self) -> tuple[float, ...]:
        """The accepted ratios, oldest first: enough to make this calibration again."""
        with self._lock:
            return tuple(self._ratios)

    def learn(self, estimated: float, reported: int) -> bool:
        """Learn from one sample of unscaled tokens; return whether it was accepted."""
        _require_count("estimated", estimated)
        _require_count("reported", reported)
        if min(estimated, reported) < LEAST_TOKENS or not LOWEST <= reported / estimated <= HIGHEST:
            return False
        with self._lock:
            self._ratios.append(reported / estimated)
            self._scale = _scale(self._ratios)
        return True


def _scale(ratios: deque[float]) -> float:
    highest = max(ratios, default=1.0)
    return highest if len(ratios) >= QUORUM else max(1.0, highest)


def _checked(ratio: float) -> float:
    if not LOWEST <= ratio <= HIGHEST:
        raise InputError(
            f"ratios: {ratio} is not between {LOWEST} and {HIGHEST}",
            hint="pass the `ratios` of a Calibration",
            field="ratios",
        )
    return float(ratio)


def _require_count(field: str, value: float) -> None:
    if type(value) not in {int, float} or not 0 <= value < math.inf:
        raise InputError(
            f"{field} must be a number of tokens, got {value!r}",
            hint="pass the counter's and the provider's tokens for the same request",
            field=field,
        )
