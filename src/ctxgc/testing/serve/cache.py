"""The prompt cache: the units of a request with their tokens, and which prefix was sent before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, TypeAlias

from ctxgc.testing.breach import Format, Json

Count: TypeAlias = Callable[[str], int]

UNIT_OVERHEAD = 4
MEDIA_TOKENS = 1_000
_NOT_READ = frozenset({"type", "id", "call_id", "tool_call_id", "tool_use_id", "status"})
_MEDIA = frozenset({"image", "image_url", "input_image", "document", "input_file", "file"})


@dataclass(frozen=True, slots=True)
class CacheUnit:
    """The smallest part that a prompt cache distinguishes; `mark` is the lifetime of a breakpoint."""

    content: bytes
    tokens: int
    mark: str | None = None


def units_of(body: Json, form: Format, count: Count) -> list[CacheUnit]:
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


def _automatic(blocks: list[CacheUnit], control: Any) -> list[CacheUnit]:
    """Put the breakpoint of the whole request on its last block."""
    if not isinstance(control, Mapping) or not blocks:
        return blocks
    last = blocks[-1]
    return [*blocks[:-1], CacheUnit(last.content, last.tokens, _lifetime(control))]


def _unit(data: Json, count: Count) -> CacheUnit:
    control = data.get("cache_control")
    content = {key: value for key, value in data.items() if key != "cache_control"}
    mark = _lifetime(control) if isinstance(control, Mapping) else None
    tokens = UNIT_OVERHEAD + sum(_tokens(value, count) for value in _read(content))
    return CacheUnit(_canonical(content), tokens, mark)


def _tool(tool: Json, count: Count) -> CacheUnit:
    control = tool.get("cache_control")
    content = {key: value for key, value in tool.items() if key != "cache_control"}
    text = json.dumps(content, ensure_ascii=False)
    mark = _lifetime(control) if isinstance(control, Mapping) else None
    return CacheUnit(_canonical(content), UNIT_OVERHEAD + count(text), mark)


def _tokens(value: str | None, count: Count) -> int:
    return MEDIA_TOKENS if value is None else count(value)


def _read(value: Any) -> Iterator[str | None]:
    """Yield the texts that a model reads in a value, and None for each image or file."""
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


OPENAI_STEP = 128
ANTHROPIC_LOOKBACK = 20


@dataclass(frozen=True, slots=True)
class CacheUse:
    """What one request read from the cache and wrote to it, in tokens; `total` is the whole prompt."""

    total: int
    read: int = 0
    written: dict[str, int] = field(default_factory=dict)

    @property
    def written_total(self) -> int:
        """All tokens written, of any lifetime."""
        return sum(self.written.values())

    @property
    def fresh(self) -> int:
        """Tokens that were neither read from the cache nor written to it."""
        return self.total - self.read - self.written_total


class PrefixCache:
    """Remembers the prefixes of earlier requests, separately for each key (model, account, session)."""

    def __init__(self, min_tokens: int = 1024) -> None:
        self.min_tokens = min_tokens
        self._known: dict[Hashable, set[bytes]] = {}

    def clear(self) -> None:
        """Expire all entries."""
        self._known.clear()

    def openai(self, key: Hashable, units: Sequence[CacheUnit]) -> CacheUse:
        """Account for a request whose prefix is cached automatically, in steps of 128 tokens."""
        known = self._known.setdefault(key, set())
        digests, sizes = _prefixes(units)
        hit = max((i for i, digest in enumerate(digests) if digest in known), default=-1)
        known.update(digests)
        total = sizes[-1] if sizes else 0
        read = self._steps(sizes[hit]) if hit >= 0 else 0
        return CacheUse(total, read, {"30m": max(0, self._steps(total) - read)})

    def anthropic(self, key: Hashable, units: Sequence[CacheUnit]) -> CacheUse:
        """Account for a request that is cached only at its breakpoints."""
        known = self._known.setdefault(key, set())
        digests, sizes = _prefixes(units)
        marks = [i for i, u in enumerate(units) if u.mark and sizes[i] >= self.min_tokens]
        hit = max((i for mark in marks for i in _lookback(mark) if digests[i] in known), default=-1)
        read = sizes[hit] if hit >= 0 else 0
        written: dict[str, int] = {}
        reached = read
        for mark in marks:
            known.add(digests[mark])
            if sizes[mark] > reached:
                life = str(units[mark].mark)
                written[life] = written.get(life, 0) + sizes[mark] - reached
                reached = sizes[mark]
        return CacheUse(sizes[-1] if sizes else 0, read, written)

    def _steps(self, tokens: int) -> int:
        return tokens - tokens % OPENAI_STEP if tokens >= self.min_tokens else 0


def _prefixes(units: Sequence[CacheUnit]) -> tuple[list[bytes], list[int]]:
    """Return for each unit the digest and the tokens of the prefix that ends with it."""
    return list(_digests(units)), list(accumulate(unit.tokens for unit in units))


def _digests(units: Sequence[CacheUnit]) -> Iterator[bytes]:
    running = hashlib.sha256()
    for unit in units:
        running.update(len(unit.content).to_bytes(8, "big") + unit.content)
        yield running.digest()


def _lookback(mark: int) -> range:
    return range(max(0, mark - ANTHROPIC_LOOKBACK + 1), mark + 1)
