"""Arguments that no sane client sends: typed errors, a server that lives on, nothing lost."""

from __future__ import annotations

import json
import random
import threading
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult

from ctxgc.mcp import ContextService
from ctxgc.mcp.server import build_server, listed
from ctxgc.mcp.tools import TOOLS
from tests.mcp.clients import answer, run
from tests.mcp.contexts import filled, log, make, opened, put

CALLS = 5_000
SCHEMAS = {tool.name: listed(tool).input_schema for tool in TOOLS}
NASTY: list[Any] = [
    None, True, False, 0, -1, 1, 10**30, -(10**30), 1.5, 1e308, "", " ", "\0", "x", "null", "[]", "{}", "[[",
    "../../etc/passwd", "h-aaaaaaaaaaaaaaaa", "seg-0000000000000000", "plan-" + "0" * 32, "é\u202e\uffff",
    "a" * 5_000, "; DROP TABLE segments; --", "%s%n", "${x}", "<script>", [], {}, [[]], [None], [{}],
    {"a": {"b": []}},    [1, 2, 3], ["x"] * 50, {"text": 5}, "log3", "w3x1", ["log3"], "2026-01-01T00:00:00Z",
    "9" * 400, "\ud83d\ude00",
]  # fmt: skip


def _value(schema: dict[str, Any], chance: random.Random) -> Any:
    """Return a value that fits a schema more or less."""
    if chance.random() < 0.25:
        return chance.choice(NASTY)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "integer":
        return chance.choice([-1, 0, 1, 2, 5, 50, 1_000, 10**12])
    if kind == "number":
        return chance.choice([-1.0, 0.0, 0.5, 50, 100.0, 1e9])
    if kind == "boolean":
        return chance.random() < 0.5
    if kind == "array":
        return [_value(schema["items"], chance) for _ in range(chance.randint(0, 4))]
    if kind == "object":
        return _object(schema, chance)
    return chance.choice(
        ["log3", "w5x2", "alpha", "src/a.py", "t1", "one", f"log{chance.randint(0, 60)}"]
    )


def _object(schema: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    known = schema.get("properties", {})
    required = set(schema.get("required", ()))
    given = {
        name: _value(inner, chance)
        for name, inner in known.items()
        if chance.random() < (0.95 if name in required else 0.4)
    }
    if chance.random() < 0.05:
        given[chance.choice(["", "x", "Segment_ids", "__proto__"])] = chance.choice(NASTY)
    return given


def _judge(result: CallToolResult, tool: str, arguments: Any) -> str:
    """Return the code of an answer: `ok`, or that of a typed error; a crash is neither."""
    found = answer(result)
    if not result.is_error:
        assert "error" not in found
        return "ok"
    error = found["error"]
    assert sorted(error) == ["code", "details", "hint", "message"]
    assert error["code"] != "ctxgc_error", (tool, arguments, error)
    assert error["message"]
    return str(error["code"])


def _intact(service: ContextService, precious: list[str], texts: list[str]) -> None:
    assert [service.segment(i)["text"] for i in precious] == texts


@pytest.mark.parametrize("seed", range(4))
def test_thousands_of_fuzzed_calls_get_typed_answers_and_lose_nothing(seed: int) -> None:
    store = opened()
    service = make(store, limit=2_000)
    texts = [log(900 + n).text for n in range(3)]
    precious = put(service, *[log(900 + n) for n in range(3)])
    service.pin(precious, None, pinned=True)
    filled(service, 30)
    chance = random.Random(seed)

    async def work() -> dict[str, int]:
        seen: dict[str, int] = {}
        async with Client(build_server(lambda _: service), mode="2026-07-28") as client:
            for _ in range(CALLS // 4):
                tool = chance.choice([*SCHEMAS])
                arguments = _object(SCHEMAS[tool], chance)
                if tool == "context_gc_unpin":
                    continue  # what is unpinned may go; the pins must hold against all the others
                code = _judge(await client.call_tool(tool, arguments), tool, arguments)
                seen[code] = seen.get(code, 0) + 1
        return seen

    seen = run(work)
    assert seen["ok"] > 100
    assert seen["invalid_input"] > 100
    _intact(service, precious, texts)
    _intact(make(store), precious, texts)


def test_eight_hostile_callers_at_once_lose_nothing() -> None:
    store = opened()
    service = make(store, limit=2_000)
    texts = [log(900 + n).text for n in range(3)]
    precious = put(service, *[log(900 + n) for n in range(3)])
    service.pin(precious, None, pinned=True)
    server = build_server(lambda _: service)
    failures: list[BaseException] = []
    came_in: list[str] = []

    async def caller(number: int) -> None:
        chance = random.Random(number)
        async with Client(server, mode="2026-07-28") as client:
            for step in range(40):
                new = {"text": f"caller{number} step{step}"}
                done = await client.call_tool("context_ingest", {"segments": [new]})
                came_in.extend(answer(done)["segment_ids"])
                tool = chance.choice([name for name in SCHEMAS if "unpin" not in name])
                arguments = _object(SCHEMAS[tool], chance)
                arguments.pop("confirm", None)
                _judge(await client.call_tool(tool, arguments), tool, arguments)

    def thread(number: int) -> None:
        try:
            anyio.run(caller, number)
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=thread, args=(n,)) for n in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    _intact(service, precious, texts)
    assert len(set(came_in)) == 320
    for segment_id in came_in:
        assert service.segment(segment_id)["text"].startswith("caller")
    stored = {key: json.dumps(doc, sort_keys=True) for key, doc in store.load("mcp", "segments")}
    assert stored.keys() >= set(came_in)
