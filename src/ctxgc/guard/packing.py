"""JSON that can be checked: one text for one value, a digest of it, and packed lists."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

from ctxgc.errors import CheckpointError, InputError

CODEC = "zlib+base64"


def plain(field: str, value: Any) -> Any:
    """Return a copy of a value as JSON keeps it.

    Raises:
        InputError: JSON cannot keep it.
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False))
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

    The digest stands over the compressed text because a changed bit in it need not change what it
    unpacks to.
    """
    data = base64.b64encode(zlib.compress(canonical(value))).decode("ascii")
    return {"codec": CODEC, "digest": digest_of(data.encode()), "data": data}


def unpack(field: str, packed: object) -> Any:
    """Return the value that was packed.

    Raises:
        CheckpointError: these are not the bytes that were packed.
    """
    if not isinstance(packed, Mapping) or set(packed) != {"codec", "digest", "data"}:
        raise _damaged(field, "it is not packed")
    if packed["codec"] != CODEC:
        raise _damaged(field, f"its codec is {packed['codec']!r}")
    data = packed["data"]
    if not isinstance(data, str) or packed["digest"] != digest_of(data.encode("utf-8", "replace")):
        raise _damaged(field, "its digest does not match")
    try:
        return json.loads(zlib.decompress(base64.b64decode(data, validate=True)))
    except (ValueError, zlib.error, RecursionError) as error:
        raise _damaged(field, str(error)) from None


def _damaged(field: str, why: str) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint is damaged: {field}: {why}", hint="use an older checkpoint", field=field
    )
