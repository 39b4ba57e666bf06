"""A request as the model reads it: a row of units, each with its tokens and its cache mark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ctxgc.testing.breach import Format, Json

Count: TypeAlias = Callable[[str], int]

UNIT_OVERHEAD = 4
MEDIA_TOKENS = 1_000
_NOT_READ = frozenset({"type", "id", "call_id", "tool_call_id", "tool_use_id", "status"})
_MEDIA = frozenset({"image", "image_url", "input_image", "document", "input_file", "file"})


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest thing that a prompt cache tells apart; `mark` is the lifetime of a breakpoint."""

    content: bytes
    tokens: int
    mark: str | None = None


def units_of(body: Json, form: Format, count: Count) -> list[Unit]:
    """Return the units of a request in the order the provider reads them: tools come first."""
    tools = [_tool(tool, count) for tool in _list(body.get("tools"))]
    if form == "openai":
        return tools + [_unit(message, count) for message in body["messages"]]
    if form == "responses":
        instructions = body.get("instructions")
        head = [_unit({"role": "system", "content": instructions}, count)] if instructions else []
        return tools + head + [_unit(item, count) for item in _list(body.get("input"))]
    system = [_unit(block, count) for block in _list(body.get("system"))]
    blocks = [_unit(block, count) for block in _anthropic_blocks(body["messages"])]
    return tools + system + _automatic(blocks, body.get("cache_control"))


def _anthropic_blocks(messages: Iterable[Json]) -> Iterator[Json]:
    for message in messages:
        for block in _list(message.get("content")):
            yield {"role": message["role"], **block}


def _automatic(blocks: list[Unit], control: Any) -> list[Unit]:
    """Put the breakpoint that a request asks for as a whole on its last block."""
    if not isinstance(control, Mapping) or not blocks:
        return blocks
    last = blocks[-1]
    return [*blocks[:-1], Unit(last.content, last.tokens, _lifetime(control))]


def _unit(data: Json, count: Count) -> Unit:
    control = data.get("cache_control")
    content = {key: value for key, value in data.items() if key != "cache_control"}
    mark = _lifetime(control) if isinstance(control, Mapping) else None
    tokens = UNIT_OVERHEAD + sum(_tokens(value, count) for value in _read(content))
    return Unit(_canonical(content), tokens, mark)


def _tool(tool: Json, count: Count) -> Unit:
    control = tool.get("cache_control")
    content = {key: value for key, value in tool.items() if key != "cache_control"}
    text = json.dumps(content, ensure_ascii=False)
    mark = _lifetime(control) if isinstance(control, Mapping) else None
    return Unit(_canonical(content), UNIT_OVERHEAD + count(text), mark)


def _tokens(value: str | None, count: Count) -> int:
    return MEDIA_TOKENS if value is None else count(value)


def _read(value: Any) -> Iterator[str | None]:
    """Yield the texts that a model reads in a value, and None for each picture or file."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        if value.get("type") in _MEDIA:
            yield None
            return
        for key, inner in value.items():
            if key not in _NOT_READ:
                yield from _read(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _read(inner)


def _lifetime(control: Json) -> str:
    return "1h" if control.get("ttl") == "1h" else "5m"


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    return list(value)


def _canonical(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
