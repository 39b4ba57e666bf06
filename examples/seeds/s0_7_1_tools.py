"""S0 7.1: the proposed tools, called by the official MCP client over stdio."""

import sys

import anyio
from mcp import Client, StdioServerParameters

SERVER = ["-m", "ctxgc", "mcp", "--store", "memory:", "--context-limit", "2000"]


async def main() -> None:
    server = StdioServerParameters(command=sys.executable, args=SERVER)
    async with Client(server) as client:

        async def call(tool: str, **arguments: object) -> dict:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.content
            return result.structured_content

        logs = [{"text": f"log {n}: " + "nothing new " * 20, "type": "log"} for n in range(20)]
        ids = (await call("context_ingest", segments=logs))["segment_ids"]

        found = await call("context_gc_analyze", max_candidates=5, include_scores=True, dry_run=True)
        assert {"tokens", "soft_limit", "hard_limit"} <= found["usage"].keys(), found["usage"]
        assert len(found["candidates"]) == 5
        for candidate in found["candidates"]:
            assert {"segment_id", "type", "score", "tokens", "reason"} <= candidate.keys()

        first, second = (c["segment_id"] for c in found["candidates"][:2])
        done = await call("context_gc_prune", segment_ids=[first], strategy="stash")
        assert done["stashed"] == [first] and done["deleted"] == [], done

        await call("context_gc_pin", segment_ids=[second])
        kept = await call("context_gc_prune", segment_ids=[second], strategy="auto")
        assert kept["stashed"] == kept["deleted"] == [], kept
        await call("context_gc_unpin", segment_ids=[second])

        gone = await call("context_gc_prune", segment_ids=[second], strategy="delete", confirm=True)
        assert gone["deleted"] == [second], gone

        changed = await call(
            "context_gc_configure",
            soft_limit_tokens=1_000, hard_limit_tokens=1_800,  # soft/hard token limits
            recent_messages=6, decision_window_seconds=600,    # recency windows
            batch=5,                                           # max batch size per GC step
        )
        assert changed["config"]["batch"] == 5
        assert len(ids) == 20


anyio.run(main)
