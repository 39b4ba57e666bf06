"""What the MCP server adds to a round trip, and how long it takes to its first answer.

python -m bench.mcp            10,000 segments
python -m bench.mcp --quick    500 segments

Both servers run at the same time and are asked in turn, so that a busy machine slows down both.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

import anyio
from mcp import Client, StdioServerParameters

from bench.tables import duration, print_table, run
from ctxgc.mcp import ContextService, NewSegment

SEGMENTS = 10_000
CALLS = 300
BATCH = 1_000
MOST_TIMES = 3.0


def main(arguments: list[str]) -> int:
    """Run the benchmark and print what was found."""
    quick = "--quick" in arguments
    with tempfile.TemporaryDirectory() as folder:
        store = f"json:{Path(folder) / 'store.json'}"
        count = 500 if quick else SEGMENTS
        _fill(store, count)
        anyio.run(_measure, store, count, 30 if quick else CALLS)
    return 0


def _fill(store: str, count: int) -> None:
    service = ContextService(store, context_limit=10_000_000)
    for start in range(0, count, BATCH):
        numbers = range(start, min(count, start + BATCH))
        service.ingest(
            [NewSegment(text=f"note {n} about file_{n}.py", type="log") for n in numbers], ()
        )
    service.close()


async def _measure(store: str, count: int, calls: int) -> None:
    ours = StdioServerParameters(
        command=sys.executable, args=["-m", "ctxgc.cli", "mcp", "--store", store]
    )
    empty = StdioServerParameters(command=sys.executable, args=["-m", "bench.mcp_empty"])
    first_ours = await _first_answer(ours, "context_usage")
    first_empty = await _first_answer(empty, "empty")
    async with Client(ours) as mine, Client(empty) as theirs:
        tools = {
            "empty tool of the SDK": lambda: theirs.call_tool("empty", {}),
            "context_usage": lambda: mine.call_tool("context_usage", {}),
            "context_search": lambda: mine.call_tool("context_search", {"query": "file_77.py"}),
            "context_ingest": lambda: mine.call_tool("context_ingest", {"segments": [_new()]}),
            "context_gc_analyze": lambda: mine.call_tool("context_gc_analyze", {}),
        }
        times = await _in_turn(tools, calls)
    base = median(times["empty tool of the SDK"])
    print(f"{count:,} segments, JSON store, {calls} calls each, p50 over stdio")
    rows = [
        [name, duration(median(took)), f"{median(took) / base:.1f} x"]
        for name, took in times.items()
    ]
    print_table([["tool", "p50", "to empty"], *rows], names=True)
    print(f"start to first answer: {duration(first_ours)} (empty server: {duration(first_empty)})")
    ratio = median(times["context_usage"]) / base
    met = "met    " if ratio <= MOST_TIMES else "NOT MET"
    print(f"{met}  context_usage takes {ratio:.1f} times an empty tool (at most {MOST_TIMES:g})")


def _new() -> dict[str, str]:
    return {"text": f"arrived at {time.perf_counter_ns()}"}


async def _first_answer(server: StdioServerParameters, tool: str) -> float:
    start = time.perf_counter()
    async with Client(server) as client:
        await client.call_tool(tool, {})
        return time.perf_counter() - start


async def _in_turn(
    tools: dict[str, Callable[[], Awaitable[object]]], calls: int
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in tools}
    for number in range(calls):
        for name, call in tools.items():
            if name == "context_gc_analyze" and number % 10:
                continue
            start = time.perf_counter()
            await call()
            times[name].append(time.perf_counter() - start)
    return times


if __name__ == "__main__":
    sys.exit(run(main, __doc__))
