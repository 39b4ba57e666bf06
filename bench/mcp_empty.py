"""A server of the SDK with one tool that does nothing: what a round trip costs at least."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("empty", log_level="ERROR")


@server.tool()
async def empty() -> str:
    """Do nothing."""
    return ""


if __name__ == "__main__":
    server.run()
