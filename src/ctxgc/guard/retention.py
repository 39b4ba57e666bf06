"""Which checkpoints are kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime

import msgspec

from ctxgc.errors import ConfigError


class CheckpointInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint without its contents; `size` is that of its JSON in bytes."""

    checkpoint_id: str
    label: str
    timestamp: datetime
    triggers: tuple[str, ...]
    size: int


class RetentionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept: everything that one of the first three rules names, within the last one.

    Args:
        newest: how many of the newest stay.
        labelled: whether those with a label stay.
        days: of how many latest days the newest one stays.
        max_bytes: how much all of them may take; the unlabelled and oldest go first, and the very
            newest always stays.

    Raises:
        ConfigError: a number is too small.
    """

    newest: int = 10
    labelled: bool = True
    days: int = 7
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        for field, least in (("newest", 1), ("days", 0), ("max_bytes", 1)):
            value = getattr(self, field)
            if value is not None and value < least:
                raise ConfigError(
                    f"retention: {field} cannot be {value}",
                    hint=f"give {least} or more",
                    field=field,
                )


def dropped(policy: RetentionPolicy, infos: Sequence[CheckpointInfo]) -> list[str]:
    """Return the ids of the checkpoints that a policy does not keep, oldest first."""
    by_age = sorted(infos, key=_age)
    kept = _named(policy, by_age)
    if policy.max_bytes is not None:
        kept = _within(policy.max_bytes, kept)
    stay = {info.checkpoint_id for info in kept}
    return [info.checkpoint_id for info in by_age if info.checkpoint_id not in stay]


def _age(info: CheckpointInfo) -> tuple[datetime, str]:
    return info.timestamp, info.checkpoint_id


def _named(policy: RetentionPolicy, by_age: list[CheckpointInfo]) -> list[CheckpointInfo]:
    last_of_day: dict[date, str] = {_day(info): info.checkpoint_id for info in by_age}
    days = sorted(last_of_day)[-policy.days :] if policy.days else []
    stay = {info.checkpoint_id for info in by_age[-policy.newest :]}
    stay |= {last_of_day[day] for day in days}
    return [
        info for info in by_age if info.checkpoint_id in stay or (policy.labelled and info.label)
    ]


def _day(info: CheckpointInfo) -> date:
    return info.timestamp.astimezone(UTC).date()


def _within(limit: int, by_age: list[CheckpointInfo]) -> list[CheckpointInfo]:
    """Return what is left when the least valued go until the rest fits."""
    total = sum(info.size for info in by_age)
    gone: set[str] = set()
    for info in sorted(by_age[:-1], key=lambda info: (bool(info.label), _age(info))):
        if total <= limit:
            break
        total -= info.size
        gone.add(info.checkpoint_id)
    return [info for info in by_age if info.checkpoint_id not in gone]
