"""Checkpoint: all that it takes to go on from here, with a digest over every value.

A checkpoint is copied from what it is given, so that later changes do not reach it. Its file is named
by its id, which holds the time and chance but no text of anybody; it is written once and never over
another. A file is only read if it is, byte for byte, what `save` writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from ctxgc.core.segment import checked_time, utc_now
from ctxgc.errors import CheckpointError, InputError
from ctxgc.guard.checkpoint_files import (
    checkpoint_file,
    find_file,
    is_checkpoint_id,
    new_checkpoint_id,
    read_document,
    write_document,
)
from ctxgc.guard.packing import canonical, digest_of, pack, plain, unpack

VERSION = 1

_PAYLOAD: dict[str, type] = {
    "context_snapshot": dict,
    "system_state": dict,
    "metrics": dict,
    "file_checksums": dict,
    "task_queue": list,
    "conversation_history": list,
    "triggers": list,
}
_KINDS: dict[str, type] = {
    **_PAYLOAD,
    **dict.fromkeys(("label", "checkpoint_id", "digest"), str),
    "version": int,
}


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of a session at one moment.

    Only `context_snapshot` has to be given. All contents are kept as JSON values; the id, the time in
    UTC and the digest make themselves. `triggers` says what caused it.

    Raises:
        InputError: a field is of the wrong kind, or holds what JSON cannot keep.
    """

    context_snapshot: dict[str, Any]
    timestamp: datetime = msgspec.field(default_factory=utc_now)
    label: str = ""
    system_state: dict[str, Any] = {}
    task_queue: list[Any] = []
    metrics: dict[str, Any] = {}
    conversation_history: list[Any] = []
    file_checksums: dict[str, str] = {}
    triggers: list[str] = []
    version: int = VERSION
    checkpoint_id: str = ""
    digest: str = ""

    def __post_init__(self) -> None:
        force_setattr(self, "timestamp", checked_time("timestamp", self.timestamp).astimezone(UTC))
        for field in _PAYLOAD:
            force_setattr(self, field, plain(field, getattr(self, field)))
        if not self.checkpoint_id:
            force_setattr(self, "checkpoint_id", new_checkpoint_id(self.timestamp))
        _check_kinds(self)
        if not self.digest:
            force_setattr(self, "digest", self._digest())

    def verify(self) -> None:
        """Make sure that every value is the one that the digest was made of.

        Raises:
            CheckpointError: a value changed.
        """
        _check_digest({**self._values(), "digest": self.digest})

    def to_dict(self) -> dict[str, Any]:
        """Return the checkpoint as JSON values, with the conversation compressed."""
        values = self._values()
        history = pack(self.conversation_history)
        return {**values, "conversation_history": history, "digest": self.digest}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Checkpoint:
        """Return the checkpoint that `to_dict` described, verified.

        Raises:
            CheckpointError: it is damaged, or of a newer version.
        """
        _check_version(data.get("version"))
        history = unpack("conversation_history", data.get("conversation_history"))
        values = {**data, "conversation_history": history}
        _check_digest(values)
        try:
            return msgspec.convert(values, cls)
        except (msgspec.ValidationError, InputError) as error:
            raise CheckpointError(f"the checkpoint is damaged: {error}") from None

    def save(self, path: str | Path) -> Path:
        """Write the checkpoint into a directory, durably, and return its file.

        Raises:
            StoreError: it cannot be written; there is no file then, and older ones are untouched.
            CheckpointError: another file has its name.
        """
        file = checkpoint_file(Path(path), self.checkpoint_id)
        write_document(file, self.to_dict())
        return file

    @classmethod
    def load(cls, path: str | Path, timestamp: str | datetime) -> Checkpoint:
        """Return the checkpoint of a directory with this time (ISO 8601) or this id, verified.

        Raises:
            CheckpointError: there is none, more than one, or it is damaged or of a newer version.
            InputError: this is neither a time with a time zone nor an id.
        """
        file = find_file(Path(path), timestamp)
        checkpoint = cls.from_dict(read_document(file))
        if file != checkpoint_file(Path(path), checkpoint.checkpoint_id):
            raise CheckpointError(
                f"{file.name} holds the checkpoint {checkpoint.checkpoint_id}",
                hint="give the file its name back",
                file=str(file),
            )
        return checkpoint

    def _values(self) -> dict[str, Any]:
        values = {field: getattr(self, field) for field in self.__struct_fields__}
        del values["digest"]
        return {**values, "timestamp": self.timestamp.isoformat()}

    def _digest(self) -> str:
        return digest_of(canonical(self._values()))


def _check_digest(values: Mapping[str, Any]) -> None:
    """Check values as they were written, before any reading can take two spellings for the same."""
    rest = {name: value for name, value in values.items() if name != "digest"}
    try:
        found = digest_of(canonical(rest))
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"the checkpoint is damaged: {error}") from None
    if values.get("digest") != found:
        raise CheckpointError(
            "the checkpoint is damaged: its digest does not match",
            hint="use an older checkpoint",
            checkpoint_id=str(values.get("checkpoint_id")),
        )


def _check_version(version: object) -> None:
    if type(version) is not int or version < 1:
        raise CheckpointError("the checkpoint is damaged: it has no version")
    if version > VERSION:
        raise CheckpointError(
            f"the checkpoint is of version {version}, this ctxgc reads up to {VERSION}",
            hint="open it with a newer ctxgc; it was left alone",
            version=version,
        )


def _check_kinds(checkpoint: Checkpoint) -> None:
    for field, kind in _KINDS.items():
        if not isinstance(getattr(checkpoint, field), kind):
            raise InputError(f"{field} must be a {kind.__name__}", field=field)
    if not is_checkpoint_id(checkpoint.checkpoint_id):
        raise InputError(
            f"checkpoint_id cannot be {checkpoint.checkpoint_id!r}",
            hint="leave it out: it is made from the time and from chance",
            field="checkpoint_id",
        )
