"""Goldens of the MCP server: its tools, a story of the real client, a stored context that goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ctxgc.mcp import ContextService
from ctxgc.stores import SearchFilters, open_store
from tools.golden.account import Account
from tools.golden.book import GoldenBook
from tools.golden.places import command, keep_input, placed, quiet_place, surroundings
from tools.golden.plain import Plain
from tools.golden.story import Clock

Json = dict[str, Any]
Step = tuple[str, Json]
_STORED = "stored-mcp.json"
_LIMIT = 4_000
_PATIENCE = 120


def add_to(book: GoldenBook) -> None:
    """Add the goldens of the MCP server."""
    book.add("mcp-tools.json", _tools)
    book.add("mcp-story.json", _story)
    book.add("stored-mcp.txt", _continued)


def write_inputs(folder: Path) -> None:
    """Write the stored context anew, by the code as it is: only for a new version of its format."""
    _served(folder, partial(_told, LIVED))
    keep_input(_STORED, (folder / "store.json").read_bytes())


# -- what the client says -------------------------------------------------------------------------


def _log(number: int) -> Json:
    lines = [f"test_{number}_{n} ... {'FAILED' if n == 3 else 'ok'}" for n in range(30)]
    return {"text": "\n".join(lines), "type": "log", "tags": ["tests"], "task_id": f"T{number % 3}"}


def _code(number: int, version: int) -> Json:
    lines = [f"def price_{number}_{n}(): return {n * version}" for n in range(25)]
    path = f"src/prices_{number}.py"
    return {"text": "\n".join(lines), "type": "code", "file_path": path, "line_range": [1, 25]}


_DECISION = {"text": "Decision: prices are kept in cents.", "type": "decision", "name": "cents"}
_NOTE = {"text": "The customer wants BUG-7 fixed first.", "type": "note", "name": "bug-7"}
_REPLY = {"text": "BUG-7 is in price_0_3.", "references": ["bug-7"], "role": "assistant"}
_MESSAGES: list[Json] = [
    {"role": "user", "content": "Please fix BUG-7 in src/prices_0.py."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "Read", "arguments": '{"file_path": "src/prices_0.py"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": _code(0, 3)["text"]},
]

LIVED: tuple[Step, ...] = (
    ("context_usage", {}),
    ("context_gc_configure", {"auto_trigger": False, "recent_messages": 3, "batch": 8}),
    ("context_ingest", {"segments": [_DECISION, _NOTE, _REPLY]}),
    ("context_ingest", {"segments": [_code(n, 1) for n in range(3)]}),
    ("context_ingest", {"segments": [_log(n) for n in range(6)]}),
    ("context_ingest", {"segments": [_code(0, 2)]}),
    ("context_ingest", {"messages": _MESSAGES}),
    ("context_ingest", {"messages": _MESSAGES}),
    ("context_task", {"task_id": "T1", "depends_on": ["T0"], "active_file": "src/prices_1.py"}),
    ("context_task", {"line_range": [1, 10], "open_files": ["src/prices_2.py:7"]}),
    ("context_usage", {}),
    ("context_gc_pin", {"segment_ids": ["cents"]}),
    ("context_gc_pin", {"query": "price_1_7"}),
    ("context_gc_unpin", {"query": "price_1_7"}),
    ("context_checkpoint", {"label": "before pruning"}),
    ("context_gc_analyze", {"include_scores": False, "max_candidates": 5}),
    ("context_gc_analyze", {"include_scores": False, "target_tokens": 900}),
    ("context_gc_prune", {"query": "test_2_3", "dry_run": True}),
    ("context_gc_prune", {"query": "test_2_3"}),
    ("context_gc_prune", {"segment_ids": ["cents"]}),
    ("context_gc_analyze", {"include_scores": False, "target_tokens": 900, "dry_run": False}),
    ("context_search", {"query": "price_0_3"}),
    ("context_search", {"query": "FAILED", "tier": "stashed", "limit": 2, "offset": 1}),
    ("context_recall", {"handle": "test_2_3", "lines": [2, 5]}),
    ("context_recall", {"handle": "test_2_3"}),
    ("context_recall", {"handle": "nowhere at all"}),
    ("context_compress", {"query": "test_4_1", "summary": "The fourth tests failed at 3."}),
    ("context_expand", {"segment_id": "fourth tests failed"}),
    ("context_checkpoint", {"action": "list"}),
    ("context_checkpoint", {"label": "after pruning"}),
)

_MORE: tuple[Step, ...] = (
    (
        "context_checkpoint",
        {"action": "restore", "checkpoint_id": "before pruning", "dry_run": True},
    ),
    ("context_checkpoint", {"action": "restore", "checkpoint_id": "before pruning"}),
    ("context_usage", {}),
    ("context_gc_prune", {"query": "test_5_3", "strategy": "delete"}),
    ("context_gc_prune", {"query": "test_5_3", "strategy": "delete", "confirm": True}),
    ("context_gc_configure", {"soft_limit_tokens": 900, "hard_limit_tokens": 1_000}),
    ("context_gc_configure", {"context_limit": 1_500, "auto_trigger": True}),
    ("context_ingest", {"segments": [_log(n) for n in range(10, 14)]}),
    ("context_import", {"path": "claude-code.jsonl"}),
    ("context_usage", {}),
    ("context_gc_configure", {}),
    ("context_gc_configure", {"batch": -1}),
)


# -- by the real client ---------------------------------------------------------------------------


def _served(folder: Path, work: Callable[[Any], Awaitable[Any]]) -> Any:
    """Start our server on a store in a folder and let work be done by the official client."""
    from mcp import Client, StdioServerParameters  # noqa: PLC0415 - an extra

    program, *arguments = command(
        "mcp", "--store", "json:store.json", "--root", ".", "--context-limit", str(_LIMIT)
    )
    server = StdioServerParameters(
        command=program, args=arguments, cwd=folder, env=surroundings(folder)
    )

    async def connected() -> Any:
        async with Client(server) as client:
            return await work(client)

    return asyncio.run(asyncio.wait_for(connected(), _PATIENCE))


async def _told(steps: tuple[Step, ...], client: Any) -> list[Json]:
    """Call the tools one after the other and return what was asked and answered."""
    found = []
    for tool, arguments in steps:
        result = await client.call_tool(tool, arguments)
        answer = result.structured_content
        found.append({"tool": tool, "arguments": arguments, "answer": answer})
    return found


def _tools(folder: Path) -> str:
    async def ask(client: Any) -> Json:
        return {
            "tools": _dumped((await client.list_tools()).tools),
            "prompts": _dumped((await client.list_prompts()).prompts),
            "resources": _dumped((await client.list_resources()).resources),
            "templates": _dumped((await client.list_resource_templates()).resource_templates),
        }

    return json.dumps(_served(folder, ask), indent=1, ensure_ascii=False) + "\n"


def _dumped(models: Any) -> list[Json]:
    return [model.model_dump(mode="json", by_alias=True, exclude_none=True) for model in models]


def _story(folder: Path) -> str:
    placed(folder, "claude-code.jsonl")
    return Plain(hide_times=True).json(_served(folder, partial(_told, (*LIVED, *_MORE))))


# -- a stored context -----------------------------------------------------------------------------


def _continued(folder: Path) -> str:
    """Open a context that the first release wrote, under a clock of ours, and go on with it."""
    placed(folder, _STORED)
    account, url = Account(), f"json:{folder / _STORED}"
    with quiet_place(folder):
        service = ContextService(url, clock=Clock(datetime(2027, 1, 4, 9, tzinfo=UTC)))
        _go_on(account, service)
        service.close()
        store = open_store(url)
        account.documents(store, "mcp")
        store.close()
    return account.text()


def _go_on(account: Account, service: ContextService) -> None:
    account.attempt("usage", service.usage)
    account.attempt("segments", lambda: service.segments(100, 0))
    account.attempt("collections", lambda: service.collections(10))
    account.attempt("plans", service.plans)
    account.attempt("checkpoints", service.checkpoints)
    account.attempt("analyzed", lambda: service.analyze(50, target_tokens=600))
    account.attempt("came in", lambda: service.ingest((), _MESSAGES))
    account.attempt("new", lambda: service.ingest((), [{"role": "user", "content": "And BUG-8?"}]))
    account.attempt("searched", lambda: service.search("price_0_3", SearchFilters(), 5, 0))
    account.attempt("recalled", lambda: service.recall("test_3_3"))
    account.attempt("pinned", lambda: service.pin((), "price_2_7", pinned=True))
    account.attempt("pruned", lambda: service.prune(query="test_1_3"))
    account.attempt("collected", lambda: service.analyze(50, dry_run=False, target_tokens=400))
    account.attempt("task", lambda: service.task({"task_id": "T2"}))
    account.attempt("configured", lambda: service.configure({"batch": 5}))
    account.attempt("checkpoint", lambda: service.checkpoint("later"))
    account.attempt("restored", lambda: service.restore("before pruning"))
    account.attempt("usage in the end", service.usage)
    account.attempt("segments in the end", lambda: service.segments(100, 0))
