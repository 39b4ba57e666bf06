"""Learn from the usage that a provider reports how far an estimate is off.

The rule: of the last `WINDOW` accepted samples, the highest ratio of reported to estimated tokens is the
scale. It rises at once, and falls below 1 only when `QUORUM` samples are in. So the scaled estimate is under
no accepted sample in the window; a low outlier changes nothing, and a high one is forgotten after `WINDOW`
more. A sample is set aside when it is too small to say much (its fixed overhead weighs more than its text)
or beyond any tokenizer's reach (tokens of another request, cached ones left out, media counted in).
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterable

from ctxgc.errors import InputError

WINDOW = 32
QUORUM = 3
LEAST_TOKENS = 256
LOWEST, HIGHEST = 0.25, 4.0


class Calibration:
    """A scale that is 1 at first and follows the samples; safe to share between threads.

    `ratios` are those of an earlier calibration, to go on from.
    """

    def __init__(self, ratios: Iterable[float] = ()) -> None:
        self._lock = threading.Lock()
        self._ratios: deque[float] = deque(map(_checked, ratios), maxlen=WINDOW)
        self._scale = _scale(self._ratios)

    @property
    def scale(self) -> float:
        """What to multiply an estimate by."""
        return self._scale

    @property
    def ratios(self) -> tuple[float, ...]:
        """The accepted ratios, oldest first: enough to make this calibration again."""
        with self._lock:
            return tuple(self._ratios)

    def learn(self, estimated: float, reported: int) -> bool:
        """Take in one sample of unscaled tokens; return whether it was accepted."""
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
            hint="pass what `Calibration.ratios` gave",
            field="ratios",
        )
    return float(ratio)


def _require_count(field: str, value: float) -> None:
    if type(value) not in {int, float} or not 0 <= value < math.inf:
        raise InputError(
            f"{field} must be a number of tokens, not {value!r}",
            hint="pass what the counter and the provider said about the same request",
            field=field,
        )
