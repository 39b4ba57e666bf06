"""Scales: the place of a value in a chart, the round values on its axis, and how numbers are written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctxgc.errors import InputError


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indexes of the points that no other beats, by rising x.

    One point beats another if it has less x and at least as much y, or as much x and more y.
    Of equal points the first counts.
    """
    order = sorted(range(len(points)), key=lambda place: (points[place][0], -points[place][1]))
    best: list[int] = []
    for place in order:
        if not best or points[place][1] > points[best[-1]][1]:
            best.append(place)
    return best


_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


class Scale(NamedTuple):
    """Maps the values from `low` to `high` to the pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of a value, in pixels."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int = 6) -> list[float]:
        """Return about this many round values within the scale."""
        return ticks(self.low, self.high, about)


def fitted_scale(
    values: Iterable[float], start: float, end: float, *, floor: float | None = None
) -> Scale:
    """Return a scale that shows all values, with some margin.

    Args:
        values: what will be drawn.
        start: the pixel of the low end.
        end: the pixel of the high end.
        floor: where the scale begins, for example 0 for bars; by default just below the smallest value.
    """
    known = list(values) or [0.0, 1.0]
    low, high = min(known), max(known)
    if floor is not None:
        low, high = min(floor, low), max(floor, high)
    is_flat = high - low <= 1e-9 * max(abs(low), abs(high), 1.0)
    air = max(abs(high) * 0.1, 0.1) if is_flat else (high - low) * 0.06
    bottom = low if low == floor else low - air
    top = high if high == floor and not is_flat else high + air
    return Scale(bottom, top, start, end)


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Return about this many round values from `low` to `high`."""
    raw = (high - low) / max(about, 1)
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in _STEPS if size * factor >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def check_finite(values: Sequence[float], field: str) -> Sequence[float]:
    """Return the values if all are finite.

    Raises:
        InputError: one of them is infinite or not a number.
    """
    for value in values:
        if not math.isfinite(value):
            raise InputError(
                f"`{field}` must be finite, got {value}",
                hint="leave such values out",
                field=field,
            )
    return values


def short(value: float, digits: int = 3) -> str:
    """Return a short form of a number: `1.23k` for 1234, `0.25` for 0.25."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * 0.9995:
            return f"{_plain(value / size, digits)}{letter}"
    return _plain(value, digits)


def count(number: int, thing: str, things: str | None = None) -> str:
    """Return for example `1 session` or `2 sessions`; `things` is an irregular plural."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def dollars_text(dollars: float) -> str:
    """Return an amount such as `$25.53` or `-$1.20`, or `$0.0042` if it is less than ten cents."""
    sign, amount = "-" if dollars < 0 else "", abs(dollars)
    return f"{sign}${amount:,.2f}" if amount >= 0.1 or not amount else f"{sign}${amount:.4f}"


def distinct_labels(values: Sequence[float]) -> list[str]:
    """Return short forms of the numbers of an axis, with as many digits (up to five) as tell them apart."""
    for digits in (3, 4, 5):
        written = [short(value, digits) for value in values]
        if written == [short(value, digits + 3) for value in values]:
            break
    return written


def _plain(value: float, significant: int) -> str:
    """Return this many significant digits without an exponent or trailing zeros."""
    if value == 0:
        return "0"
    digits = max(0, significant - 1 - math.floor(math.log10(abs(value))))
    written = f"{value:.{min(digits, 6)}f}"
    return written.rstrip("0").rstrip(".") if "." in written else written
