"""Tools: Python functions that the model may call, the toolbox that runs them, and recall.

A tool's JSON Schema comes from the annotations of its function, or is given. Whatever a tool does, the model
gets an answer to its call.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_type_hints

import msgspec

from ctxgc.budget import GCPolicy
from ctxgc.client.answer import Call
from ctxgc.config import mask_text
from ctxgc.errors import InputError
from ctxgc.session import RECALL_TOOLS, RecallAnswers, Session

INTERRUPTED = "the call was interrupted before it was answered"
NOTHING = "(no output)"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

RECALL_NAMES = tuple(tool.name for tool in RECALL_TOOLS)


class ToolOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call: the text that the model reads, and whether it is an error."""

    call_id: str
    text: str
    is_error: bool = False

    def marked(self) -> str:
        """Return the text for protocols that have no field for errors."""
        return f"Error: {self.text}" if self.is_error else self.text


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A function with the name, description and JSON Schema that the model sees.

    Its policy says whether a collection may leave the schema out until the tool is named again. `takes` is
    the type that arguments are checked against, where the schema comes from the function's annotations.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    function: Callable[..., Any]
    takes: type[msgspec.Struct] | None = None
    policy: GCPolicy = GCPolicy.LOCKED

    def run(self, arguments: Mapping[str, Any]) -> str:
        """Call the function and return its result as text.

        Raises:
            InputError: an argument is missing, unknown or of the wrong type; the message names it.
        """
        given = dict(arguments)
        if self.takes is not None:
            try:
                bound = msgspec.convert(given, self.takes, strict=False)
            except msgspec.ValidationError as error:
                raise InputError(f"arguments: {error}", hint="see the tool's schema") from None
            # Only what the model gives is passed on, so the function's own defaults apply.
            given = {name: getattr(bound, name) for name in given}
        return _text(self.function(**given))


def make_tool(
    tool: Tool | Callable[..., Any] | Mapping[str, Any],
    *,
    name: str | None = None,
    description: str | None = None,
    schema: Mapping[str, Any] | None = None,
    policy: GCPolicy = GCPolicy.LOCKED,
) -> Tool:
    """Return a tool from a function, or from `{"schema": ..., "callable": ...}`.

    The schema is the JSON Schema of the parameters, or a whole tool as OpenAI or Anthropic write it.
    Without one it is made from the function's annotations, and arguments are checked against them.

    Raises:
        InputError: it is not a plain function, or has no usable name or schema.
    """
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, Mapping):
        return _from_pair(tool, policy)
    if inspect.iscoroutinefunction(tool) or not callable(tool):
        raise InputError(
            f"a tool must be a function, got {type(tool).__name__}",
            hint="wrap a coroutine function in a plain one; else pass the function itself",
            field="tools",
        )
    said: dict[str, Any] = {} if schema is None else _unpack(schema)
    called = _checked_name(name or said.get("name") or getattr(tool, "__name__", ""))
    takes, parameters = _described(tool, called) if schema is None else (None, said["parameters"])
    return Tool(
        name=called,
        description=description or said.get("description") or inspect.getdoc(tool) or called,
        parameters=parameters,
        function=tool,
        takes=takes,
        policy=GCPolicy(policy),
    )


def failure(error: BaseException) -> str:
    """Return an exception as the model sees it, without secrets."""
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


def _from_pair(pair: Mapping[str, Any], policy: GCPolicy) -> Tool:
    unknown = set(pair) - {"schema", "callable", "policy"}
    if unknown or "callable" not in pair:
        raise InputError(
            f"a tool cannot be read from the keys {sorted(map(str, pair))}",
            hint='pass a function, or {"schema": ..., "callable": ...}',
            field="tools",
        )
    return make_tool(pair["callable"], schema=pair.get("schema"), policy=pair.get("policy", policy))


def _unpack(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return name, description and parameters from any of the shapes that tools are written in."""
    inner = schema.get("function", schema)
    for key in ("parameters", "input_schema"):
        if isinstance(inner, Mapping) and isinstance(inner.get(key), Mapping):
            return {**inner, "parameters": dict(inner[key])}
    if schema.get("type") == "object":
        return {"parameters": dict(schema)}
    raise InputError(
        "schema: there are no parameters in it",
        hint='pass {"type": "object", "properties": ...} or a whole tool definition',
        field="schema",
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value) if value.strip() else NOTHING
    return NOTHING if value is None else json.dumps(value, ensure_ascii=False, default=str)


# -- The toolbox


class Toolbox:
    """Holds tools and runs the calls of an answer, whatever they do."""

    def __init__(self, tools: Iterable[Tool] = (), *, workers: int = 1) -> None:
        self._tools: dict[str, Tool] = {}
        self.workers = workers
        for tool in tools:
            self.add(tool)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def add(self, tool: Tool) -> None:
        """Add a tool.

        Raises:
            InputError: there is already one of this name.
        """
        if tool.name in self._tools:
            raise InputError(
                f'there is already a tool "{tool.name}"', hint="give it another name", field="name"
            )
        self._tools[tool.name] = tool

    def run_all(self, calls: Sequence[Call], outcomes: list[ToolOutcome]) -> None:
        """Run the calls and append each outcome to `outcomes` as it arrives, in order."""
        if self.workers == 1 or len(calls) == 1:
            outcomes.extend(map(self.run, calls))
            return
        with ThreadPoolExecutor(min(self.workers, len(calls))) as pool:
            outcomes.extend(pool.map(self.run, calls))

    def run(self, call: Call) -> ToolOutcome:
        """Run one call; what goes wrong is reported to the model, never raised."""
        tool = self._tools.get(call.name)
        if call.problem is not None:
            return ToolOutcome(call_id=call.call_id, text=call.problem, is_error=True)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            text = f'there is no tool "{call.name}"; there are: {known}'
            return ToolOutcome(call_id=call.call_id, text=text, is_error=True)
        try:
            return ToolOutcome(call_id=call.call_id, text=tool.run(call.arguments))
        except Exception as error:  # noqa: BLE001 - a tool may raise anything
            return ToolOutcome(call_id=call.call_id, text=failure(error), is_error=True)


def interrupted(call_id: str) -> ToolOutcome:
    """Return the outcome of a call that was never finished."""
    return ToolOutcome(call_id=call_id, text=INTERRUPTED, is_error=True)


# -- Signatures: the parameters of a function, as a JSON Schema and to check arguments


def _described(
    function: Callable[..., Any], name: str
) -> tuple[type[msgspec.Struct], dict[str, Any]]:
    """Return the parameters of a function, read from its annotations, as a type and as a JSON Schema.

    Raises:
        InputError: a parameter has no name, or a type that JSON Schema cannot express.
    """
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = list(inspect.signature(function).parameters.values())
        kind = msgspec.defstruct(
            name, [_field(each, hints) for each in parameters], kw_only=True,
            forbid_unknown_fields=True,
        )  # fmt: skip
        return kind, _schema_of(kind, name)
    except (TypeError, ValueError, NameError) as error:
        raise InputError(
            f"tool {name}: its parameters cannot be described: {error}",
            hint="annotate them with plain types, or pass a schema",
            field="tools",
        ) from None


def _field(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> Any:
    if parameter.kind not in _NAMED:
        raise TypeError(f"{parameter} is not a named parameter")
    kind = hints.get(parameter.name, Any)
    if parameter.default is inspect.Parameter.empty:
        return parameter.name, kind
    return parameter.name, kind, msgspec.field(default=parameter.default)


def _schema_of(kind: type[msgspec.Struct], name: str) -> dict[str, Any]:
    definitions: dict[str, Any] = msgspec.json.schema(kind)["$defs"]
    own: dict[str, Any] = definitions.pop(name)
    own.pop("title", None)
    return {**own, "$defs": definitions} if definitions else own


# -- Recall: the tools that bring back what was moved out of the view


def recall_tools(session: Session) -> tuple[Tool, ...]:
    """Return `context_recall` and `context_search`; the session knows then that its model has them."""
    session.tools()
    answers = RecallAnswers(session, session.note_fault).by_name
    return tuple(
        Tool(
            name=tool.name,
            description=tool.description,
            parameters=tool.parameters,
            function=answers[tool.name],
        )
        for tool in RECALL_TOOLS
    )
