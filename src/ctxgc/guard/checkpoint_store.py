"""CheckpointStore: the checkpoints of one session in its store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Literal

import msgspec

from ctxgc.errors import CheckpointError, ConfigError
from ctxgc.guard.checkpoint import Checkpoint, canonical
from ctxgc.stores import Drop, Put, Store, Write

# -- Retention


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


_COLLECTION: Literal["checkpoints"] = "checkpoints"


class DamagedCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint that does not verify, and why. It stays where it is."""

    checkpoint_id: str
    reason: str


class Latest(msgspec.Struct, frozen=True):
    """The newest checkpoint that verifies, if there is one, and the damaged ones after it."""

    checkpoint: Checkpoint | None
    damaged: tuple[DamagedCheckpoint, ...]


class CheckpointStore:
    """Keeps checkpoints and lets the older ones go by a retention policy."""

    def __init__(
        self, store: Store, session_id: str, retention: RetentionPolicy | None = None
    ) -> None:
        self.store = store
        self.session_id = session_id
        self.retention = retention if retention is not None else RetentionPolicy()

    def writes(self, checkpoint: Checkpoint) -> tuple[Write, ...]:
        """Return the writes that put a checkpoint on the shelf and take off what is not kept.

        For a session that commits them together with its own.

        Raises:
            CheckpointError: the checkpoint does not verify, or another has its id.
        """
        checkpoint.verify()
        doc = checkpoint.to_dict()
        held = self.store.get(self.session_id, _COLLECTION, checkpoint.checkpoint_id)
        if held is not None and held.get("digest") != checkpoint.digest:
            raise CheckpointError(
                f"another checkpoint has the id {checkpoint.checkpoint_id}",
                hint="a checkpoint is never written over another: leave the id out",
                checkpoint_id=checkpoint.checkpoint_id,
            )
        key = checkpoint.checkpoint_id
        older = [info for info in self.list() if info.checkpoint_id != key]
        gone = dropped(self.retention, [*older, _info(doc)])
        return (Put(_COLLECTION, key, doc), *(Drop(_COLLECTION, name) for name in gone))

    def add(self, checkpoint: Checkpoint) -> tuple[str, ...]:
        """Put a checkpoint on the shelf, durably; return the ids that it made room from.

        Raises:
            StoreError: nothing changed.
        """
        writes = self.writes(checkpoint)
        self.store.commit(self.session_id, writes)
        return tuple(write.key for write in writes if isinstance(write, Drop))

    def list(self) -> tuple[CheckpointInfo, ...]:
        """Return what is on the shelf, oldest first, without what is too damaged to name itself."""
        infos = []
        for _, doc in self.store.load(self.session_id, _COLLECTION):
            try:
                infos.append(_info(doc))
            except (KeyError, TypeError, ValueError):
                continue
        return tuple(sorted(infos, key=lambda info: (info.timestamp, info.checkpoint_id)))

    def get(self, checkpoint_id: str) -> Checkpoint:
        """Return a checkpoint, verified.

        Raises:
            CheckpointError: there is none with this id, or it is damaged or of a newer version.
        """
        doc = self.store.get(self.session_id, _COLLECTION, checkpoint_id)
        if doc is None:
            raise CheckpointError(
                f"there is no checkpoint {checkpoint_id!r}",
                hint="list the checkpoints to see which there are",
                checkpoint_id=checkpoint_id,
            )
        return _read(checkpoint_id, doc)

    def latest_good(self) -> Latest:
        """Return the newest checkpoint that verifies, and the damaged ones that were skipped."""
        damaged: list[DamagedCheckpoint] = []
        rows = self.store.load(self.session_id, _COLLECTION)
        for key, doc in sorted(rows, key=lambda row: row[0], reverse=True):
            try:
                return Latest(_read(key, doc), tuple(damaged))
            except CheckpointError as error:
                damaged.append(DamagedCheckpoint(key, error.message))
        return Latest(None, tuple(damaged))


def _read(key: str, doc: Mapping[str, Any]) -> Checkpoint:
    checkpoint = Checkpoint.from_dict(doc)
    if checkpoint.checkpoint_id != key:
        raise CheckpointError(
            f"the checkpoint is damaged: {key} holds {checkpoint.checkpoint_id}",
            checkpoint_id=key,
        )
    return checkpoint


def _info(doc: Mapping[str, Any]) -> CheckpointInfo:
    size = len(canonical(doc))
    named = {name: doc[name] for name in ("checkpoint_id", "label", "timestamp", "triggers")}
    return msgspec.convert({**named, "size": size}, CheckpointInfo)
