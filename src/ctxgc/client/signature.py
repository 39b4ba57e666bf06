"""The parameters of a function: as a JSON Schema for the model, and to check what it sends."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

import msgspec

from ctxgc.errors import InputError

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Signature:
    """The parameters of one function, as a type that arguments can be converted to."""

    def __init__(self, kind: type[msgspec.Struct], schema: dict[str, Any]) -> None:
        self._kind = kind
        self._schema = schema

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the parameters."""
        return self._schema

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments in the types of the function; only those that were given.

        Raises:
            InputError: one is missing, unknown or of the wrong type; the message names it.
        """
        try:
            bound = msgspec.convert(dict(arguments), self._kind, strict=False)
        except msgspec.ValidationError as error:
            raise InputError(f"arguments: {error}", hint="see the tool's schema") from None
        return {name: getattr(bound, name) for name in arguments}


def read_signature(function: Callable[..., Any], name: str) -> Signature:
    """Return the parameters of a function, read from its annotations.

    Raises:
        InputError: a parameter has no name, or a type that JSON Schema cannot say.
    """
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = list(inspect.signature(function).parameters.values())
        kind = msgspec.defstruct(
            name, [_field(each, hints) for each in parameters], kw_only=True,
            forbid_unknown_fields=True,
        )  # fmt: skip
        return Signature(kind, _schema_of(kind, name))
    except (TypeError, ValueError, NameError) as error:
        raise InputError(
            f"tool {name}: its parameters cannot be described: {error}",
            hint="annotate them with plain types, or pass a schema",
            field="tools",
        ) from None


def _field(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Any:
    if parameter.kind not in _NAMED:
        raise TypeError(f"{parameter} is not a parameter with a name")
    kind = hints.get(parameter.name, Any)
    if parameter.default is inspect.Parameter.empty:
        return parameter.name, kind
    # Only what the model gives is handed on, so the function's own default stays in force.
    return parameter.name, kind, msgspec.field(default=parameter.default)


def _schema_of(kind: type[msgspec.Struct], name: str) -> dict[str, Any]:
    definitions: dict[str, Any] = msgspec.json.schema(kind)["$defs"]
    own: dict[str, Any] = definitions.pop(name)
    own.pop("title", None)
    return {**own, "$defs": definitions} if definitions else own
