"""The files of checkpoints: named by time and chance, written once, read only if unchanged."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ctxgc.core.segment import checked_time
from ctxgc.errors import CheckpointError, InputError
from ctxgc.stores.files import os_errors, write_atomic

_ID = re.compile(r"\d{8}T\d{12}Z-[0-9a-f]{8}", re.ASCII)


def new_checkpoint_id(moment: datetime) -> str:
    """Return a fresh id that sorts by time and is a safe file name everywhere."""
    return f"{_stamp(moment)}-{secrets.token_hex(4)}"


def is_checkpoint_id(text: object) -> bool:
    """Tell whether a text is an id that `new_checkpoint_id` may have made."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def checkpoint_file(folder: Path, checkpoint_id: str) -> Path:
    """Return the file of a checkpoint in a directory."""
    return folder / f"checkpoint_{checkpoint_id}.json"


def write_document(file: Path, document: Mapping[str, Any]) -> None:
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


def read_document(file: Path) -> dict[str, Any]:
    """Return what a checkpoint's file says.

    Raises:
        CheckpointError: the bytes are not such as `write_document` writes.
    """
    data = _read(file)
    try:
        document = json.loads(data)
        same = isinstance(document, dict) and _render(document) == data
    except (ValueError, RecursionError) as error:
        raise _damaged(file, str(error)) from None
    if not same:
        raise _damaged(file, "it is not as it was written")
    return dict(document)


def find_file(folder: Path, wanted: str | datetime) -> Path:
    """Return the file of an id or a time; the argument itself never becomes a path.

    Raises:
        CheckpointError: there is none, or more than one.
        InputError: this is neither an id nor a time with a time zone.
    """
    if isinstance(wanted, str) and is_checkpoint_id(wanted):
        files = [checkpoint_file(folder, wanted)]
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


def _damaged(file: Path, why: str) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint {file.name} is damaged: {why}",
        hint="use an older checkpoint",
        file=str(file),
    )
