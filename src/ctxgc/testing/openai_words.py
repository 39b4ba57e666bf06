"""The sentences in which OpenAI says that a field is missing or wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxgc.testing.breach import Breach

MIN_ONE = "Expected an array with minimum length 1, but got an empty array instead."


def missing_field(param: str, index: int | None = None) -> Breach:
    """Return the refusal of a request that lacks a field."""
    text = f"Missing required parameter: '{param}'."
    return Breach("shape", text, param, "missing_required_parameter", index=index)


def wrong_type(param: str, wanted: str, got: Any, index: int | None = None) -> Breach:
    """Return the refusal of a field with a value of another type."""
    text = f"Invalid type for '{param}': expected {wanted}, but got {json_type(got)} instead."
    return Breach("shape", text, param, "invalid_type", index=index)


def wrong_value(
    rule: str, param: str, got: Any, allowed: Sequence[str], index: int | None = None
) -> Breach:
    """Return the refusal of a field whose value is not one of the allowed ones."""
    text = f"Invalid value: '{got}'. Supported values are: {quoted(allowed)}."
    return Breach(rule, text, param, "invalid_value", index=index)


def json_type(value: Any) -> str:
    """Return OpenAI's name for the type of a JSON value, with its article."""
    names = {bool: "a boolean", int: "an integer", float: "a decimal", str: "a string"}
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    return names.get(type(value), "an array")


def quoted(names: Sequence[str]) -> str:
    """Return the names the way OpenAI lists them: `'a', 'b', and 'c'`."""
    marked = [f"'{name}'" for name in names]
    if len(marked) < 3:
        return " and ".join(marked)
    return ", ".join(marked[:-1]) + f", and {marked[-1]}"
