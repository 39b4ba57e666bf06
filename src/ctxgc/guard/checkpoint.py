"""Checkpoint: all that is needed to continue from here, with a digest over every value.

A checkpoint is copied from what it is given, so that later changes do not reach it. Its file is named
by its id, which holds the time and chance but no text of anybody; it is written once and never over
another. A file is only read if it is, byte for byte, what `save` writes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import force_setattr

from ctxgc.core import checked_time, utc_now
from ctxgc.errors import CheckpointError, InputError
from ctxgc.files import os_errors, write_atomic

# -- Files: named by time and chance, written once, verified when read


_ID = re.compile(r"\d{8}T\d{12}Z-[0-9a-f]{8}", re.ASCII)


def _new_checkpoint_id(moment: datetime) -> str:
    """Return a fresh id that sorts by time and is a safe file name everywhere."""
    return f"{_stamp(moment)}-{secrets.token_hex(4)}"


def _is_checkpoint_id(text: object) -> bool:
    """Return whether a text is an id that `new_checkpoint_id` may have made."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def _checkpoint_file(folder: Path, checkpoint_id: str) -> Path:
    """Return the file of a checkpoint in a directory."""
    return folder / f"checkpoint_{checkpoint_id}.json"


def _write_document(file: Path, document: Mapping[str, Any]) -> None:
    """Write a checkpoint's file, durably; writing the same again changes nothing.

    Raises:
        StoreError: it cannot be written; there is no file then, and older ones are untouched.
        CheckpointError: another file has its name.
    """
    data = _render(document)
    if not file.exists():
        write_atomic(file, data)
    elif _read(file) != data:
        raise CheckpointError(
            f"{file} exists and is not this checkpoint",
            hint="a checkpoint is never written over another: move that file away",
            file=str(file),
        )


def _read_document(file: Path) -> dict[str, Any]:
    """Return what a checkpoint's file says.

    Raises:
        CheckpointError: the bytes are not such as `write_document` writes.
    """
    data = _read(file)
    try:
        document = json.loads(data)
        same = isinstance(document, dict) and _render(document) == data
    except (ValueError, RecursionError) as error:
        raise _damaged_file(file, str(error)) from None
    if not same:
        raise _damaged_file(file, "it is not as it was written")
    return dict(document)


def _find_file(folder: Path, wanted: str | datetime) -> Path:
    """Return the file of an id or a time; the argument itself never becomes a path.

    Raises:
        CheckpointError: there is none, or more than one.
        InputError: this is neither an id nor a time with a time zone.
    """
    if isinstance(wanted, str) and _is_checkpoint_id(wanted):
        files = [_checkpoint_file(folder, wanted)]
    else:
        files = sorted(folder.glob(f"checkpoint_{_stamp(_moment(wanted))}-*.json"))
    found = [file for file in files if file.is_file()]
    if len(found) != 1:
        raise CheckpointError(
            f"{folder} holds {len(found) or 'no'} checkpoints for {str(wanted)!r}",
            hint="load one by its id" if found else "look which files are there",
            files=[file.name for file in found],
        )
    return found[0]


def _moment(wanted: str | datetime) -> datetime:
    try:
        moment = datetime.fromisoformat(wanted) if isinstance(wanted, str) else wanted
    except ValueError:
        raise InputError(
            f"{wanted!r} is neither the time nor the id of a checkpoint",
            hint="give its timestamp in ISO 8601, or its checkpoint_id",
            field="timestamp",
        ) from None
    return checked_time("timestamp", moment)


def _stamp(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%S%f}Z"


def _render(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=2, allow_nan=False).encode("ascii") + b"\n"


def _read(file: Path) -> bytes:
    with os_errors(file, "read"):
        return file.read_bytes()


def _damaged_file(file: Path, why: str) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint {file.name} is damaged: {why}",
        hint="use an older checkpoint",
        file=str(file),
    )


# -- Canonical JSON, its digest, and packed lists


_CODEC = "zlib+base64"


def _plain(field: str, value: Any) -> Any:
    """Return a copy of a value as JSON keeps it; dataclasses, structs and times as well.

    Raises:
        InputError: JSON cannot keep it.
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=msgspec.to_builtins))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{field} cannot be kept in a checkpoint: {error}",
            hint="use JSON values only",
            field=field,
        ) from None


def canonical(value: Any) -> bytes:
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def digest_of(data: bytes) -> str:
    """Return the BLAKE2b digest of bytes as 64 hex digits."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def pack(value: Any) -> dict[str, str]:
    """Return a JSON value compressed, with a digest of the compressed text.

    The digest covers the compressed text because a changed bit in it need not change what it
    unpacks to.
    """
    data = base64.b64encode(zlib.compress(canonical(value))).decode("ascii")
    return {"codec": _CODEC, "digest": digest_of(data.encode()), "data": data}


def unpack(field: str, packed: object) -> Any:
    """Return the value that was packed.

    Raises:
        CheckpointError: these are not the bytes that were packed.
    """
    if not isinstance(packed, Mapping) or set(packed) != {"codec", "digest", "data"}:
        raise _damaged_field(field, "it is not packed")
    if packed["codec"] != _CODEC:
        raise _damaged_field(field, f"its codec is {packed['codec']!r}")
    data = packed["data"]
    if not isinstance(data, str) or packed["digest"] != digest_of(data.encode("utf-8", "replace")):
        raise _damaged_field(field, "its digest does not match")
    try:
        return json.loads(zlib.decompress(base64.b64decode(data, validate=True)))
    except (ValueError, zlib.error, RecursionError) as error:
        raise _damaged_field(field, str(error)) from None


def _damaged_field(field: str, why: str) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint is damaged: {field}: {why}", hint="use an older checkpoint", field=field
    )


_VERSION = 1

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
    version: int = _VERSION
    checkpoint_id: str = ""
    digest: str = ""

    def __post_init__(self) -> None:
        force_setattr(self, "timestamp", checked_time("timestamp", self.timestamp).astimezone(UTC))
        for field in _PAYLOAD:
            force_setattr(self, field, _plain(field, getattr(self, field)))
        if not self.checkpoint_id:
            force_setattr(self, "checkpoint_id", _new_checkpoint_id(self.timestamp))
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
        file = _checkpoint_file(Path(path), self.checkpoint_id)
        _write_document(file, self.to_dict())
        return file

    @classmethod
    def load(cls, path: str | Path, timestamp: str | datetime) -> Checkpoint:
        """Return the checkpoint of a directory with this time (ISO 8601) or this id, verified.

        Raises:
            CheckpointError: there is none, more than one, or it is damaged or of a newer version.
            InputError: this is neither a time with a time zone nor an id.
        """
        file = _find_file(Path(path), timestamp)
        checkpoint = cls.from_dict(_read_document(file))
        if file != _checkpoint_file(Path(path), checkpoint.checkpoint_id):
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
    if version > _VERSION:
        raise CheckpointError(
            f"the checkpoint is of version {version}, this ctxgc reads up to {_VERSION}",
            hint="open it with a newer ctxgc; it was left alone",
            version=version,
        )


def _check_kinds(checkpoint: Checkpoint) -> None:
    for field, kind in _KINDS.items():
        if not isinstance(getattr(checkpoint, field), kind):
            raise InputError(f"{field} must be a {kind.__name__}", field=field)
    if not _is_checkpoint_id(checkpoint.checkpoint_id):
        raise InputError(
            f"checkpoint_id cannot be {checkpoint.checkpoint_id!r}",
            hint="leave it out: it is made from the time and from chance",
            field="checkpoint_id",
        )


# -- Checksums of the files that the work depends on


_NO_FILE = ""
"""What a checkpoint says of a file that was not there, or could not be read."""

DifferenceKind = Literal["missing", "changed", "added", "unreadable"]


class FileDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not as the checkpoint knew it.

    `missing`: it is gone. `changed`: its bytes differ. `added`: it was not there, or not readable.
    `unreadable`: it is there, but cannot be read now.
    """

    path: str
    kind: DifferenceKind
    expected: str
    found: str


def checksum_files(paths: Iterable[str | Path], root: str | Path = ".") -> dict[str, str]:
    """Return the SHA-256 of each file by its path as given; relative ones are below `root`.

    A file that is not there, or cannot be read, has the checksum `""`: a checkpoint is made anyway.
    """
    return {str(path): _checksum(Path(root) / path) or _NO_FILE for path in paths}


def compare_files(checkpoint: Checkpoint, root: str | Path = ".") -> list[FileDifference]:
    """Return how the files differ now from what a checkpoint knew, in its order."""
    compared = (
        _compare(path, expected, Path(root) / path)
        for path, expected in checkpoint.file_checksums.items()
    )
    return [difference for difference in compared if difference is not None]


def _compare(path: str, expected: str, file: Path) -> FileDifference | None:
    found = _checksum(file)
    if found == expected or (expected == _NO_FILE and not found):
        return None
    kind: DifferenceKind = "added" if expected == _NO_FILE else "changed"
    if not found:
        kind = "missing" if found is None else "unreadable"
    return FileDifference(path=path, kind=kind, expected=expected, found=found or _NO_FILE)


def _checksum(file: Path) -> str | None:
    """The checksum of a file; None if there is none, empty if it cannot be read."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return None
    except (OSError, ValueError):  # ValueError: no path can have this name
        return _NO_FILE
