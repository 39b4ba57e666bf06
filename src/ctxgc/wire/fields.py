"""Reading fields of a provider message: the value in its type, or an error that names the field."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from ctxgc.errors import MessageError

Json = dict[str, Any]


def text_field(data: Json, key: str, where: str = "") -> str:
    """Return a field that must be a string."""
    value = data.get(key)
    if not isinstance(value, str):
        raise wrong(where + key, "a string", value)
    return value


def object_field(data: Json, key: str, where: str = "") -> Json:
    """Return a field that must be an object."""
    value = data.get(key)
    if not isinstance(value, dict):
        raise wrong(where + key, "an object", value)
    return value


def blocks_field(data: Json, key: str, where: str = "", *, wanted: str = "a list") -> list[Json]:
    """Return a field that must be a list of objects."""
    value = data.get(key)
    if not isinstance(value, list):
        raise wrong(where + key, wanted, value)
    for index, block in enumerate(value):
        if not isinstance(block, dict):
            raise wrong(f"{where}{key}[{index}]", "an object", block)
    return value


def wrong(field: str, wanted: str, value: Any) -> MessageError:
    """Return the error for a field of the wrong type."""
    found = "missing" if value is None else f"of the type {type(value).__name__}"
    return MessageError(
        f"`{field}` must be {wanted}, but is {found}",
        hint="see the provider's reference for this message",
        field=field,
    )


def unknown_role(role: Any, known: Iterable[str]) -> MessageError:
    """Return the error for a role that the format does not have."""
    names = list(known)
    near = difflib.get_close_matches(str(role), names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known roles: {', '.join(names)}"
    return MessageError(f"`role` {role!r} is unknown", hint=hint, field="role")
