"""Schemas as small as they can be: an agent pays for every token of them in every request."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

_NOISE = frozenset({"title", "maxLength", "minLength", "maxItems", "minItems"})


def input_schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, without titles, nulls and references.

    Limits on lengths are left out as well: they are checked all the same.
    """
    schema = arguments.model_json_schema()
    known = schema.pop("$defs", {})
    found = _tidy(schema, known)
    found.pop("description", None)
    return {"type": "object", **{k: v for k, v in found.items() if k != "type"}}


def _tidy(schema: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        inner = _tidy(dict(known[schema["$ref"].rpartition("/")[2]]), known)
        inner.pop("description", None)
        return inner
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        rest = {k: v for k, v in schema.items() if k not in ("anyOf", "default")}
        return _tidy({**options[0], **rest}, known)
    return {key: _value(key, value, known) for key, value in schema.items() if _counts(key, value)}


def _counts(key: str, value: Any) -> bool:
    return key not in _NOISE and not (key == "default" and value in (None, [], ""))


def _value(key: str, value: Any, known: dict[str, Any]) -> Any:
    if key == "properties":
        return {name: _tidy(inner, known) for name, inner in value.items()}
    if key in ("items", "additionalProperties") and isinstance(value, dict):
        return _tidy(value, known)
    return value
