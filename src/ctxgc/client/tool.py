"""Tools: Python functions that the model may call, and what comes of a call."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ctxgc.client.signature import Signature, read_signature
from ctxgc.config import mask_text
from ctxgc.errors import InputError

NOTHING = "(no output)"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a call came to: the text that the model reads, and whether it is an error."""

    call_id: str
    text: str
    is_error: bool = False

    def marked(self) -> str:
        """Return the text for protocols that have no field for errors."""
        return f"Error: {self.text}" if self.is_error else self.text


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A function with the name, the description and the JSON Schema that the model sees of it."""

    name: str
    description: str
    parameters: dict[str, Any]
    function: Callable[..., Any]
    signature: Signature | None = None

    def run(self, arguments: Mapping[str, Any]) -> str:
        """Call the function and return what it says as text."""
        given = dict(arguments) if self.signature is None else self.signature.bind(arguments)
        return _text(self.function(**given))


def make_tool(
    tool: Tool | Callable[..., Any] | Mapping[str, Any],
    *,
    name: str | None = None,
    description: str | None = None,
    schema: Mapping[str, Any] | None = None,
) -> Tool:
    """Return a tool from a function, or from `{"schema": ..., "callable": ...}`.

    The schema is the JSON Schema of the parameters, or a whole tool as OpenAI or Anthropic write it.
    Without one it is made from the function's annotations, and arguments are checked against them.

    Raises:
        InputError: it is not callable, or what the model needs to know cannot be found out.
    """
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, Mapping):
        return _from_pair(tool)
    if inspect.iscoroutinefunction(tool) or not callable(tool):
        raise InputError(
            f"a tool is a function, not {type(tool).__name__}",
            hint="a coroutine function needs a plain one around it; else pass the function itself",
            field="tools",
        )
    said: dict[str, Any] = {} if schema is None else _unpack(schema)
    called = _checked_name(name or said.get("name") or getattr(tool, "__name__", ""))
    signature = read_signature(tool, called) if schema is None else None
    return Tool(
        name=called,
        description=description or said.get("description") or inspect.getdoc(tool) or called,
        parameters=said["parameters"] if signature is None else signature.schema(),
        function=tool,
        signature=signature,
    )


def failure(error: BaseException) -> str:
    """Return what the model is told of an exception, without secrets."""
    said = str(error).strip()
    kind = type(error).__name__
    return mask_text(f"{kind}: {said}" if said else kind)


def _checked_name(name: Any) -> str:
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise InputError(
        f"a tool cannot be called {name!r}",
        hint="name it with letters, digits, _ and -, at most 64",
        field="name",
    )


def _from_pair(pair: Mapping[str, Any]) -> Tool:
    unknown = set(pair) - {"schema", "callable"}
    if unknown or "callable" not in pair:
        raise InputError(
            f"a tool cannot be read from the keys {sorted(map(str, pair))}",
            hint='pass a function, or {"schema": ..., "callable": ...}',
            field="tools",
        )
    return make_tool(pair["callable"], schema=pair.get("schema"))


def _unpack(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return name, description and parameters from any of the shapes that a tool is written in."""
    inner = schema.get("function", schema)
    for key in ("parameters", "input_schema"):
        if isinstance(inner, Mapping) and isinstance(inner.get(key), Mapping):
            return {**inner, "parameters": dict(inner[key])}
    if schema.get("type") == "object":
        return {"parameters": dict(schema)}
    raise InputError(
        "schema: it describes no parameters",
        hint='pass {"type": "object", "properties": ...} or a whole tool definition',
        field="schema",
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value) if value.strip() else NOTHING
    return NOTHING if value is None else json.dumps(value, ensure_ascii=False, default=str)
