"""`context_recall` and `context_search`: the tools with which a model gets back what left its view.

Their schemas in each wire format, and the reply to a call of one of them in the format of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import msgspec

from ctxgc.collector import first_lines
from ctxgc.core import RECALL_TOOL, SEARCH_TOOL, Format
from ctxgc.errors import CtxgcError, InputError
from ctxgc.session.archive import Hit

EXCERPT = 200
MOST_HITS = 5


class RecallTool:
    """One of the tools: its name, description and JSON Schema."""

    def __init__(self, name: str, description: str, parameters: dict[str, Any]) -> None:
        self.name = name
        self.description = description
        self.parameters = parameters

    def schema(self, form: Format) -> dict[str, Any]:
        """Return the tool as a request of this format lists it."""
        head = {"name": self.name, "description": self.description}
        if form == "anthropic":
            return {**head, "input_schema": self.parameters}
        described = {**head, "parameters": self.parameters}
        if form == "responses":
            return {"type": "function", **described, "strict": False}
        return {"type": "function", "function": described}


RECALL_TOOLS = (
    RecallTool(
        RECALL_TOOL,
        "Return text that was moved out of this conversation, by the handle in a [ctxgc: ...] note.",
        {
            "type": "object",
            "properties": {
                "handle": {"type": "string"},
                "lines": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "description": "[first, last], from 1",
                },
                "pattern": {"type": "string", "description": "only lines near this text"},
            },
            "required": ["handle"],
        },
    ),
    RecallTool(
        SEARCH_TOOL,
        "Search everything that was moved out of this conversation; returns handles with excerpts.",
        {
            "type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["query"],
        },
    ),
)


class Readable(Protocol):
    """What of a session the tools need."""

    @property
    def context_limit(self) -> int:
        """The size of the window in tokens."""
        ...

    def read(
        self,
        handle: str,
        *,
        lines: tuple[int, int] | None = None,
        pattern: str | None = None,
        together: bool = False,
    ) -> str:
        """Return the text of a segment, or the lines asked for."""
        ...

    def search(self, query: str, limit: int, filters: Mapping[str, Any]) -> list[Hit]:
        """Return the segments that match best."""
        ...


class RecallAnswers:
    """What the tools answer about a session; `note_fault` learns what the model missed."""

    def __init__(self, session: Readable, note_fault: Callable[[str], None]) -> None:
        self._session = session
        self._note_fault = note_fault
        self.by_name: Mapping[str, Callable[..., str]] = {
            RECALL_TOOL: self.recall,
            SEARCH_TOOL: self.search,
        }

    def recall(
        self, handle: str, lines: list[int] | None = None, pattern: str | None = None
    ) -> str:
        """Return what `context_recall` answers.

        Raises:
            CtxgcError: there is no such segment, or an argument is wrong.
        """
        text = self._session.read(handle, lines=_range(lines), pattern=pattern, together=True)
        self._note_fault(handle)
        # As many characters as the window has tokens are about a quarter of it.
        number = None if pattern else lines[0] if lines else 1
        return first_lines(text, self._session.context_limit, number)

    def search(self, query: str, limit: int = MOST_HITS) -> str:
        """Return what `context_search` answers."""
        hits = self._session.search(query, limit, {"tier": "stashed"})
        return "\n".join(map(_line, hits)) or "nothing that was moved out matches"


class _RecallArguments(msgspec.Struct, forbid_unknown_fields=True):
    example: ClassVar[str] = f'{RECALL_TOOL}(handle="...", lines=[first, last], pattern="text")'
    handle: str
    lines: list[int] | None = None
    pattern: str | None = None


class _SearchArguments(msgspec.Struct, forbid_unknown_fields=True):
    example: ClassVar[str] = f'{SEARCH_TOOL}(query="words", limit={MOST_HITS})'
    query: str
    limit: int = MOST_HITS


_SHAPES: Mapping[str, type[_RecallArguments | _SearchArguments]] = {
    RECALL_TOOL: _RecallArguments,
    SEARCH_TOOL: _SearchArguments,
}
_CALLS = ("function", "function_call", "tool_use")
"""What calls of tools that a host answers are named in the three formats."""


def reply_to(answers: RecallAnswers, call: object) -> dict[str, Any] | None:
    """Return the message that answers a call of one of the tools; None for a call of another tool.

    The call is one of OpenAI chat (`tool_calls`), of OpenAI Responses (`function_call`) or of Anthropic
    (`tool_use`), as a dict or as the object of an SDK. What goes wrong is told to the model.

    Raises:
        InputError: it is not a call.
    """
    given = _as_dict(call)
    if given.get("type", "function") not in _CALLS:
        return None
    called = given["function"] if isinstance(given.get("function"), Mapping) else given
    name, call_id = called.get("name"), given.get("call_id") or given.get("id")
    if not isinstance(name, str) or not isinstance(call_id, str):
        raise InputError(
            f"a tool call has a name and an id, got {sorted(given)}",
            hint="pass one item of tool_calls, a function_call, or a tool_use block",
            field="call",
        )
    if name not in answers.by_name:
        return None
    text, is_error = _answer(answers, name, called.get("arguments", called.get("input", {})))
    if called is not given:
        return {"role": "tool", "tool_call_id": call_id, "content": text}
    if given.get("type") == "function_call":
        return {"type": "function_call_output", "call_id": call_id, "output": text}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return {"role": "user", "content": [{**result, "is_error": True} if is_error else result]}


def _answer(answers: RecallAnswers, name: str, arguments: Any) -> tuple[str, bool]:
    """Return the text of a reply, and whether it tells of an error."""
    shape = _SHAPES[name]
    try:
        given = msgspec.json.decode(arguments or "{}") if isinstance(arguments, str) else arguments
        asked = msgspec.convert(given, shape, strict=False)
    except msgspec.DecodeError as error:
        return f"Error: the arguments of {name} are wrong: {error}. Call {shape.example}", True
    try:
        return answers.by_name[name](**msgspec.structs.asdict(asked)), False
    except CtxgcError as error:
        return f"Error: {error}", True


def _as_dict(call: object) -> Mapping[str, Any]:
    dumped = call.model_dump() if hasattr(call, "model_dump") else call
    if isinstance(dumped, Mapping):
        return dumped
    raise InputError(
        f"a tool call must be a dict or an object of an SDK, got {type(call).__name__}",
        hint="pass one item of tool_calls, a function_call, or a tool_use block",
        field="call",
    )


def _range(lines: Sequence[int] | None) -> tuple[int, int] | None:
    if not lines:
        return None
    if len(lines) != 2:
        raise InputError(
            f"lines must be two numbers, got {lines}", hint="[first, last], from 1", field="lines"
        )
    return lines[0], lines[1]


def _line(hit: Hit) -> str:
    start = " ".join(hit.text[: EXCERPT * 2].split())[:EXCERPT]
    what = hit.segment.file_path or hit.segment.name or hit.segment.type
    return f"{hit.handle} ({what}, {hit.segment.tokens or 0} tokens): {start}"
