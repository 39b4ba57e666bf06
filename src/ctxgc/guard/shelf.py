"""CheckpointShelf: the checkpoints of one session in its store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ctxgc.errors import CheckpointError
from ctxgc.guard.checkpoint import Checkpoint
from ctxgc.guard.packing import canonical
from ctxgc.guard.retention import CheckpointInfo, RetentionPolicy, dropped
from ctxgc.stores.base import Drop, Put, Store, Write

COLLECTION: Literal["checkpoints"] = "checkpoints"


class DamagedCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint that does not verify, and why. It stays where it is."""

    checkpoint_id: str
    reason: str


class Latest(msgspec.Struct, frozen=True):
    """The newest checkpoint that verifies, if there is one, and the damaged ones after it."""

    checkpoint: Checkpoint | None
    damaged: tuple[DamagedCheckpoint, ...]


class CheckpointShelf:
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
        held = self.store.get(self.session_id, COLLECTION, checkpoint.checkpoint_id)
        if held is not None and held.get("digest") != checkpoint.digest:
            raise CheckpointError(
                f"another checkpoint has the id {checkpoint.checkpoint_id}",
                hint="a checkpoint is never written over another: leave the id out",
                checkpoint_id=checkpoint.checkpoint_id,
            )
        key = checkpoint.checkpoint_id
        older = [info for info in self.list() if info.checkpoint_id != key]
        gone = dropped(self.retention, [*older, _info(doc)])
        return (Put(COLLECTION, key, doc), *(Drop(COLLECTION, name) for name in gone))

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
        for _, doc in self.store.load(self.session_id, COLLECTION):
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
        doc = self.store.get(self.session_id, COLLECTION, checkpoint_id)
        if doc is None:
            raise CheckpointError(
                f"there is no checkpoint {checkpoint_id!r}",
                hint="list the checkpoints to see which there are",
                checkpoint_id=checkpoint_id,
            )
        return _read(checkpoint_id, doc)

    def latest_good(self) -> Latest:
        """Return the newest checkpoint that verifies, and the damaged ones that were passed over."""
        damaged: list[DamagedCheckpoint] = []
        rows = self.store.load(self.session_id, COLLECTION)
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
            f"the checkpoint is damaged: under {key} stands {checkpoint.checkpoint_id}",
            checkpoint_id=key,
        )
    return checkpoint


def _info(doc: Mapping[str, Any]) -> CheckpointInfo:
    size = len(canonical(doc))
    named = {name: doc[name] for name in ("checkpoint_id", "label", "timestamp", "triggers")}
    return msgspec.convert({**named, "size": size}, CheckpointInfo)
