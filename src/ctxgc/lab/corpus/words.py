"""The words that the corpus is written in, and the chance that picks them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

VERBS = (
    "merge", "resolve", "expand", "settle", "collect", "reserve", "dispatch", "normalise", "rank",
    "allocate", "validate", "reconcile", "schedule", "fold", "route", "trim", "publish", "archive",
)  # fmt: skip
NOUNS = (
    "shipment", "invoice", "parcel", "voucher", "carrier", "ledger", "quota", "tariff", "batch",
    "window", "depot", "rebate", "manifest", "pallet", "surcharge", "courier", "waybill", "refund",
)  # fmt: skip
QUALITIES = (
    "pending", "overdue", "partial", "nightly", "regional", "priority", "stale", "inbound", "bonded",
    "returned", "split", "expired", "insured", "manual", "weekly", "shared",
)  # fmt: skip
PEOPLE = ("Mira", "Tomasz", "Ines", "Kofi", "Hanne", "Rafael", "Yuki", "Oksana")
PLACES = ("Rotterdam", "Gdynia", "Valencia", "Tampere", "Bristol", "Trieste", "Malmo", "Porto")
PACKAGES = ("freightline", "stockroom", "tollgate", "parceldesk", "harbourmaster", "crossdock")


class Chance(Random):
    """Random choices that are the same in every process and version."""

    def hexes(self, count: int) -> str:
        """Return so many hexadecimal digits."""
        return "".join(self.choice("0123456789abcdef") for _ in range(count))

    def happens(self, share: float) -> bool:
        """Tell whether something that happens this often happens now."""
        return self.random() < share

    def some(self, values: Sequence[T], count: int) -> list[T]:
        """Return so many different values, in their own order."""
        chosen = sorted(self.sample(range(len(values)), min(count, len(values))))
        return [values[place] for place in chosen]

    def symbol(self) -> str:
        """Return a name as functions have them."""
        return f"{self.choice(VERBS)}_{self.choice(QUALITIES)}_{self.choice(NOUNS)}"

    def constant(self) -> str:
        """Return a name as constants have them."""
        return f"{self.choice(QUALITIES)}_{self.choice(NOUNS)}_limit".upper()

    def ticket(self) -> str:
        """Return the number of a ticket."""
        return f"FRT-{self.randrange(1200, 9800)}"
