"""The words that invented projects are made of."""

from __future__ import annotations

from random import Random

AREAS = (
    "billing", "catalog", "shipping", "ledger", "search", "auth", "notify", "export", "metrics",
    "scheduler", "inventory", "pricing", "refunds", "webhooks", "sessions", "reports",
)  # fmt: skip
VERBS = (
    "resolve", "collect", "merge", "expire", "rotate", "allocate", "reconcile", "dispatch",
    "normalize", "prune", "replay", "settle", "throttle", "verify", "encode", "hydrate",
)  # fmt: skip
NOUNS = (
    "invoice", "voucher", "parcel", "cursor", "bucket", "tenant", "quota", "digest", "window",
    "segment", "batch", "ticket", "route", "token", "snapshot", "tariff", "manifest", "backlog",
)  # fmt: skip
PARTS = (
    "limit", "offset", "weight", "margin", "retries", "delay", "floor", "ceiling", "factor", "span",
)  # fmt: skip
PLACES = ("staging", "production", "the nightly job", "the canary", "the EU region", "CI")


def identifier(random: Random) -> str:
    """Return a function name such as `reconcile_voucher_window`."""
    return f"{random.choice(VERBS)}_{random.choice(NOUNS)}_{random.choice(NOUNS)}"


def constant(random: Random) -> str:
    """Return a constant name such as `PARCEL_QUOTA_MARGIN`."""
    return f"{random.choice(NOUNS)}_{random.choice(NOUNS)}_{random.choice(PARTS)}".upper()


def code(random: Random, start: str) -> str:
    """Return a code that stands nowhere else, such as `INC-7F3A9`."""
    return f"{start}-{random.randrange(16**5):05X}"
