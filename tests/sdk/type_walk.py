"""Instances of everything that an SDK's types allow, found by walking the types themselves."""

from __future__ import annotations

import json
import os
import types
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin

import pydantic
from typing_extensions import get_type_hints, is_typeddict

Json = dict[str, Any]

# Texts that mean something to whoever reads the field; every other field says its own name.
_TEXTS = {"arguments": "{}", "data": "aGk=", "url": "https://a.example/b", "image_url": "data:,hi"}
_PLAIN: dict[Any, Any] = {int: 1, float: 1.5, bool: True, object: {"any": [1]}, Any: {"any": [1]}}
_WRAPPERS = (Required, NotRequired)
# Files that the SDKs read and encode by themselves; they are no part of a history.
_FILES = (bytes, os.PathLike)


def members(union: Any) -> list[type]:
    """Return the TypedDicts or models of a union, each once, in its order."""
    if _is_record(union):
        return [union]
    found = [member for each in get_args(union) for member in members(each)]
    return list(dict.fromkeys(found))


def names(union: Any, field: str) -> set[str]:
    """Return the values that a field may have over all members of a union."""
    return {
        each
        for member in members(union)
        for name, hint, _ in _fields(member)
        if name == field
        for each in _values(hint, field)
        if isinstance(each, str)
    }


def instances(member: Any) -> list[Json]:
    """Return objects of one type: the least, the fullest, and one for each further choice."""
    return list(_values(member, ""))


def _values(hint: Any, field: str) -> list[Any]:
    return list(
        {json.dumps(each, sort_keys=True): each for each in _all_values(hint, field)}.values()
    )


def _all_values(hint: Any, field: str) -> Iterator[Any]:
    origin, inner = get_origin(hint), get_args(hint)
    if _is_record(hint):
        yield from _objects(hint)
    elif origin is Literal:
        yield from inner
    elif origin in (Union, types.UnionType):
        yield from (value for each in inner for value in _values(each, field))
    elif hint is type(None):
        yield None
    elif hint in _FILES or origin in _FILES:
        return
    elif hint is str:
        yield _TEXTS.get(field, field or "text")
    elif hint in _PLAIN:
        yield _PLAIN[hint]
    elif origin is dict or hint is dict:
        yield {"key": _values(inner[1], field)[0]} if inner else {}
    elif isinstance(origin, type) and issubclass(origin, Iterable):
        yield from ([value] for value in _values(inner[0], field))
    elif inner:
        yield from _values(inner[0], field)
    else:
        raise TypeError(f"no values are known for the field {field!r} of the type {hint!r}")


def _objects(member: Any) -> Iterator[Json]:
    fields = [(name, _values(hint, name), required) for name, hint, required in _fields(member)]
    fields = [field for field in fields if field[1]]
    least = {name: values[0] for name, values, required in fields if required}
    full = {name: values[0] for name, values, _ in fields}
    yield least
    yield full
    for name, values, required in fields:
        yield from ({**(least if required else full), name: value} for value in values[1:])


def _fields(member: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield the fields of a type by their names in JSON, whether they are required with them."""
    if isinstance(member, type) and issubclass(member, pydantic.BaseModel):
        for name, info in member.model_fields.items():
            yield info.alias or name, info.annotation, info.is_required()
        return
    for name, hint in get_type_hints(member, include_extras=True).items():
        bare = get_args(hint)[0] if get_origin(hint) in _WRAPPERS else hint
        yield name, bare, get_origin(hint) is Required


def _is_record(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is not None:
        return False
    return is_typeddict(hint) or (isinstance(hint, type) and issubclass(hint, pydantic.BaseModel))
